//! `models`: every role has a chain, every model of a chain is served by exactly one endpoint.

use std::collections::BTreeMap;

use crate::config::written::{
    WrittenEndpoint, WrittenEndpointKind, WrittenEngineerModel, WrittenModels,
};
use crate::config::{Endpoint, EndpointKind, EngineerFramework, EngineerModel, Models, Role};
use crate::load::Checker;

/// Longest model id or endpoint name in bytes.
const NAME_LEN_MAX: usize = 96;
/// Longest chain.
const CHAIN_MAX: usize = 16;
/// Most endpoints.
const ENDPOINTS_MAX: usize = 32;

pub(super) fn models(written: Option<WrittenModels>, check: &mut Checker<'_>) -> Option<Models> {
    let written = check.required(
        "models",
        written,
        "models.roles, models.engineer and models.endpoints",
    )?;
    let WrittenModels {
        roles,
        engineer,
        endpoints,
    } = written;
    let endpoints = all_endpoints(endpoints.unwrap_or_default(), check);
    let roles = roles.unwrap_or_default();
    for role in Role::ALL.into_iter().filter(|role| role.is_required()) {
        if !roles.contains_key(&role) {
            let key = format!("models.roles.{}", role.as_str());
            check.refuse(
                &key,
                "missing; give a list of model ids, first choice first",
            );
        }
    }
    for (role, chain) in &roles {
        chain_is_served(*role, chain, &endpoints, check);
    }
    Some(Models {
        engineer: engineer_model(engineer, &endpoints, check)?,
        roles,
        endpoints,
    })
}

/// Stands in for refused models while the other keys are checked.
pub(super) fn nothing() -> Models {
    Models {
        roles: BTreeMap::new(),
        engineer: EngineerModel {
            framework: EngineerFramework::Scripted,
            endpoint: String::new(),
        },
        endpoints: BTreeMap::new(),
    }
}

fn chain_is_served(
    role: Role,
    chain: &[String],
    endpoints: &BTreeMap<String, Endpoint>,
    check: &mut Checker<'_>,
) {
    let key = format!("models.roles.{}", role.as_str());
    if chain.is_empty() || chain.len() > CHAIN_MAX {
        check.refuse(&key, format!("give 1 to {CHAIN_MAX} model ids"));
    }
    for (index, model) in chain.iter().enumerate() {
        if chain[..index].contains(model) {
            check.refuse(&key, format!("model `{model}` is given twice"));
        }
        let served = endpoints.values().any(|e| e.models.contains(model));
        if !served {
            check.refuse(
                &key,
                format!(
                    "no endpoint serves model `{model}`; add it to models.endpoints.<name>.models"
                ),
            );
        }
    }
}

fn engineer_model(
    written: Option<WrittenEngineerModel>,
    endpoints: &BTreeMap<String, Endpoint>,
    check: &mut Checker<'_>,
) -> Option<EngineerModel> {
    let WrittenEngineerModel {
        framework,
        endpoint,
    } = Checker::block(written);
    let framework = check.required("models.engineer.framework", framework, "`scripted`");
    let key = "models.engineer.endpoint";
    // With one endpoint there is nothing to choose.
    let only = match endpoints.len() {
        1 => endpoints.keys().next().cloned(),
        _ => None,
    };
    let endpoint = check.required(key, endpoint.or(only), "the name of an endpoint")?;
    if !endpoints.contains_key(&endpoint) {
        let known: Vec<&str> = endpoints.keys().map(String::as_str).collect();
        check.refuse(
            key,
            format!("no endpoint `{endpoint}`; there are: {}", known.join(", ")),
        );
    }
    Some(EngineerModel {
        framework: framework?,
        endpoint,
    })
}

fn all_endpoints(
    written: BTreeMap<String, WrittenEndpoint>,
    check: &mut Checker<'_>,
) -> BTreeMap<String, Endpoint> {
    let key = "models.endpoints";
    if written.is_empty() || written.len() > ENDPOINTS_MAX {
        check.refuse(key, format!("give 1 to {ENDPOINTS_MAX} endpoints"));
    }
    let mut endpoints = BTreeMap::new();
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for (name, endpoint) in written {
        let key = format!("{key}.{name}");
        if !is_name(&name) {
            check.refuse(&key, name_rule(&name));
        }
        let Some(endpoint) = one_endpoint(&key, endpoint, check) else {
            continue;
        };
        for model in &endpoint.models {
            if let Some(other) = seen.insert(model.clone(), name.clone()) {
                check.refuse(
                    &format!("{key}.models"),
                    format!("model `{model}` is also served by endpoint `{other}`"),
                );
            }
        }
        endpoints.insert(name, endpoint);
    }
    endpoints
}

fn one_endpoint(key: &str, written: WrittenEndpoint, check: &mut Checker<'_>) -> Option<Endpoint> {
    let WrittenEndpoint {
        kind,
        playbook,
        models,
    } = written;
    let kind = check.required(&format!("{key}.kind"), kind, "`playbook`");
    let playbook = check.required(
        &format!("{key}.playbook"),
        playbook,
        "the path of a playbook file",
    );
    let models = models.unwrap_or_default();
    let models_key = format!("{key}.models");
    if models.is_empty() {
        check.refuse(&models_key, "missing; give the model ids that it serves");
    }
    for model in models.iter().filter(|model| !is_name(model)) {
        check.refuse(&models_key, name_rule(model));
    }
    let kind = match kind? {
        WrittenEndpointKind::Playbook => EndpointKind::Playbook {
            playbook: check.layers().resolve(&playbook?),
        },
    };
    Some(Endpoint { kind, models })
}

// Model ids stand in HTTP headers and URLs, endpoint names in paths.
fn is_name(text: &str) -> bool {
    (1..=NAME_LEN_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/' | b':'))
}

fn name_rule(text: &str) -> String {
    format!("`{text}` must be 1 to {NAME_LEN_MAX} of a-z A-Z 0-9 . _ - / :")
}
