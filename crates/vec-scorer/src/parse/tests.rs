//! Tests of `parse`.

use proptest::prelude::*;

use super::*;

const CAPS: Caps = Caps {
    bytes_max: 1 << 20,
    rows_max: 4,
};

fn parse(bytes: &[u8]) -> Result<Matrix, FormatCode> {
    parse_prediction(bytes, CAPS).map_err(|error| match error {
        ParseError::Format(problem) => problem.code,
        ParseError::Read(error) => panic!("read from memory: {error}"),
    })
}

fn rows(pairs: &[(u64, f64)]) -> Matrix {
    Matrix::new(pairs.iter().copied()).expect("rows")
}

#[test]
fn what_people_and_libraries_write_is_accepted() {
    let expected = rows(&[(0, 1.5), (10, -2e3)]);
    for text in [
        "id,prediction\n10,-2e3\n0,1.5\n",
        "id,prediction\r\n10,-2000.0\r\n0,1.5",
        "\u{feff}id,prediction\n0,+1.5\n10,-2E+3\n",
        "\"id\",\"prediction\"\n\"0\",\"1.5\"\n10,-2000\n",
        "id, prediction\n\n0 , 1.50\n10,\t-2000.\n\n",
    ] {
        assert_eq!(parse(text.as_bytes()), Ok(expected.clone()), "{text:?}");
    }
}

#[test]
fn hostile_files_get_one_code_each() {
    use FormatCode as C;
    let row = |value: &str| format!("id,prediction\n1,{value}\n").into_bytes();
    let wide = format!("id,prediction\n1,2{}\n", ",".repeat(1_000_000)).into_bytes();
    let wide_header = vec![b','; 1_000_000];
    let many: Vec<u8> = format!("id,prediction\n{}", "7,1\n".repeat(200_000)).into_bytes();
    for (code, bytes) in [
        (C::Empty, b"".to_vec()),
        (C::Empty, b"\n\n\r\n".to_vec()),
        (C::Empty, b"\xef\xbb\xbf".to_vec()),
        (C::BadHeader, b"id,pred\n1,2\n".to_vec()),
        (C::BadHeader, b"1,2\n".to_vec()),
        (C::BadHeader, b"id,prediction,x\n".to_vec()),
        (C::BadHeader, b"ID,Prediction\n".to_vec()),
        (C::BadHeader, b"\0\0\0\0\n".to_vec()),
        (C::BadHeader, b"PK\x03\x04zip".to_vec()),
        (C::BadHeader, wide_header),
        (C::NotUtf8, b"\xff\xfei\0d\0\n".to_vec()),
        (C::NotUtf8, b"id,prediction\n1,\xc3\x28\n".to_vec()),
        (C::BadRow, b"id,prediction\n1\n".to_vec()),
        (C::BadRow, b"id,prediction\n1,2,3\n".to_vec()),
        (C::BadRow, b"id,prediction\n1;2\n".to_vec()),
        (C::BadRow, wide),
        (C::BadId, b"id,prediction\n,2\n".to_vec()),
        (C::BadId, b"id,prediction\n-1,2\n".to_vec()),
        (C::BadId, b"id,prediction\n+1,2\n".to_vec()),
        (C::BadId, b"id,prediction\n01,2\n".to_vec()),
        (C::BadId, b"id,prediction\n1.0,2\n".to_vec()),
        (C::BadId, b"id,prediction\n0x1,2\n".to_vec()),
        (C::BadId, b"id,prediction\n1\0,2\n".to_vec()),
        (
            C::BadId,
            b"id,prediction\n18446744073709551616,2\n".to_vec(),
        ),
        (C::BadId, "id,prediction\n١,2\n".as_bytes().to_vec()),
        (C::DuplicateId, b"id,prediction\n1,2\n1,2\n".to_vec()),
        (C::NotANumber, row("")),
        (C::NotANumber, row("abc")),
        (C::NotANumber, row("0x1p3")),
        (C::NotANumber, row("1_000")),
        (C::BadRow, row("1,5")),
        (C::NotANumber, row("1\0")),
        (C::NotANumber, row("٣.٥")),
        (C::NotANumber, row("--1")),
        (C::NotANumber, row("1e")),
        (C::NotANumber, row("True")),
        (C::NotANumber, row("\"1\n2\"")),
        (C::NotFinite, row("nan")),
        (C::NotFinite, row("-NaN")),
        (C::NotFinite, row("inf")),
        (C::NotFinite, row("-Infinity")),
        (C::NotFinite, row("1e999")),
        (C::NotFinite, row(&"9".repeat(1_000))),
        (C::OutOfRange, row("1.1e300")),
        (C::ExtraRows, many),
        (C::TooLarge, vec![b'x'; (1 << 20) + 1]),
    ] {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert_eq!(parse(&bytes), Err(code), "{shown:?}");
    }
}

#[test]
fn the_size_limit_is_exact() {
    let text = b"id,prediction\n1,2\n";
    let at = |bytes_max| {
        parse_prediction(
            text.as_slice(),
            Caps {
                bytes_max,
                rows_max: 1,
            },
        )
    };
    assert!(at(text.len() as u64).is_ok());
    let Err(ParseError::Format(problem)) = at(text.len() as u64 - 1) else {
        panic!("accepted");
    };
    assert_eq!(problem.code, FormatCode::TooLarge);
}

#[test]
fn tiny_and_long_numbers_are_numbers() {
    assert_eq!(parse(b"id,prediction\n1,1e-400\n"), Ok(rows(&[(1, 0.0)])));
    let long = format!("id,prediction\n1,0.{}1\n", "0".repeat(5_000));
    assert_eq!(parse(long.as_bytes()), Ok(rows(&[(1, 0.0)])));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    // Mutants of a good file: never a panic, and what is accepted is a checked matrix.
    #[test]
    fn mutants_are_refused_or_read(at in 0_usize..40, byte in any::<u8>(), cut in 0_usize..41) {
        let mut bytes = b"id,prediction\n3,1.25\n4,-7e2\n12,0.001\n".to_vec();
        let at = at.min(bytes.len() - 1);
        bytes[at] = byte;
        bytes.truncate(cut.max(1));
        if let Ok(matrix) = parse(&bytes) {
            prop_assert!(matrix.ids().len() <= 3);
            prop_assert_eq!(Matrix::decode(&matrix.encode()), Ok(matrix));
        }
    }
}
