//! A table says what the `BTreeMap` of the same entries says.

use proptest::prelude::*;

use super::*;

fn entries() -> impl Strategy<Value = Vec<(String, i32)>> {
    prop::collection::vec(("[a-e]{1,2}", any::<i32>()), 0..12)
}

proptest! {
    #[test]
    fn reads_as_a_map(entries in entries(), probe in "[a-e]{1,2}") {
        let map: BTreeMap<String, i32> = entries.iter().cloned().collect();
        let table: Table<String, i32> = entries.into_iter().collect();
        prop_assert_eq!(table.get(probe.as_str()), map.get(probe.as_str()));
        prop_assert_eq!(table.contains_key(&probe), map.contains_key(&probe));
        prop_assert_eq!((table.len(), table.is_empty()), (map.len(), map.is_empty()));
        prop_assert!(table.iter().eq(&map));
        prop_assert!(table.keys().eq(map.keys()) && table.values().eq(map.values()));
        prop_assert_eq!(format!("{table:?}"), format!("{map:?}"));
        prop_assert!(table.clone().into_iter().eq(map.clone()));
        prop_assert_eq!(Table::from(map), table);
    }

    #[test]
    fn equal_tables_have_equal_entries(a in entries(), b in entries()) {
        let maps = [&a, &b].map(|e| e.iter().cloned().collect::<BTreeMap<_, _>>());
        let tables = [a, b].map(|e| e.into_iter().collect::<Table<_, _>>());
        prop_assert_eq!(tables[0] == tables[1], maps[0] == maps[1]);
    }

    #[test]
    fn the_json_is_that_of_a_map(entries in entries()) {
        let map: BTreeMap<String, i32> = entries.iter().cloned().collect();
        let table: Table<String, i32> = entries.into_iter().collect();
        let json = serde_json::to_string(&table).expect("json");
        prop_assert_eq!(&json, &serde_json::to_string(&map).expect("json"));
        prop_assert_eq!(serde_json::from_str::<Table<_, _>>(&json).expect("map"), table);
    }
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let error = serde_json::from_str::<Table<String, i32>>(r#"{"a":1,"b":2,"a":1}"#);
    let text = error.expect_err("twice").to_string();
    assert!(text.starts_with("a key stands there twice"), "{text}");
    assert!(serde_json::from_str::<Table<String, i32>>("[]").is_err());
}

#[test]
fn keys_in_any_order_are_read() {
    let table: Table<String, i32> = serde_json::from_str(r#"{"b":2,"a":1}"#).expect("map");
    assert_eq!(
        table,
        Table::from([("a".to_owned(), 1), ("b".to_owned(), 2)])
    );
}

#[test]
fn equal_keys_come_to_be_shared() {
    let table = |value| Table::from([("a".to_owned(), value), ("b".to_owned(), value)]);
    let (mut one, mut two) = (table(1), table(2));
    let mut pool = Pool::default();
    one.share_keys(&mut pool);
    two.share_keys(&mut pool);
    assert!(Arc::ptr_eq(&one.keys, &two.keys));
    assert_eq!((one, two), (table(1), table(2)));
}
