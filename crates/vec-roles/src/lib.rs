//! Prompt assembly and reply parsing of the roles, Engineer briefs.
