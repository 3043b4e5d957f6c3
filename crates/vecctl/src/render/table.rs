//! Aligned columns.

/// Where a column's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Space between columns.
const GAP: &str = "  ";

/// Lines of a table with a head; columns as wide as their longest cell, no trailing space.
pub(crate) fn table(head: &[(&str, Align)], rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize, name: &str| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .chain([name.chars().count()])
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = head
        .iter()
        .enumerate()
        .map(|(column, (name, _))| width(column, name))
        .collect();
    let names: Vec<String> = head.iter().map(|(name, _)| (*name).to_owned()).collect();
    std::iter::once(&names)
        .chain(rows)
        .map(|cells| {
            let cells: Vec<String> = cells
                .iter()
                .zip(head)
                .zip(&widths)
                .map(|((cell, (_, align)), width)| match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                })
                .collect();
            cells.join(GAP).trim_end().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_characters() {
        let rows = [
            vec!["1".to_owned(), "größer".to_owned(), "9.5".to_owned()],
            vec!["12".to_owned(), "a".to_owned(), "10.25".to_owned()],
        ];
        let head = [
            ("node", Align::Right),
            ("name", Align::Left),
            ("score", Align::Right),
        ];
        assert_eq!(
            table(&head, &rows),
            [
                "node  name    score",
                "   1  größer    9.5",
                "  12  a       10.25"
            ]
        );
        assert_eq!(table(&head[..2], &[]), ["node  name"]);
    }
}
