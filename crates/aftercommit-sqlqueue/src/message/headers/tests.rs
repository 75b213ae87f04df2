use proptest::prelude::*;

use super::*;

fn plain() -> impl Strategy<Value = HeaderValue> {
    prop_oneof![
        Just(HeaderValue::Null),
        any::<bool>().prop_map(HeaderValue::Bool),
        any::<i8>().prop_map(HeaderValue::I8),
        any::<u8>().prop_map(HeaderValue::U8),
        any::<i16>().prop_map(HeaderValue::I16),
        any::<u16>().prop_map(HeaderValue::U16),
        any::<i32>().prop_map(HeaderValue::I32),
        any::<u32>().prop_map(HeaderValue::U32),
        any::<i64>().prop_map(HeaderValue::I64),
        any::<u32>().prop_map(|bits| HeaderValue::F32(f32::from_bits(bits))),
        any::<u64>().prop_map(|bits| HeaderValue::F64(f64::from_bits(bits))),
        (any::<u8>(), any::<u32>()).prop_map(|(scale, value)| HeaderValue::Decimal { scale, value }),
        any::<Vec<u8>>().prop_map(|bytes| HeaderValue::Text(bytes.into())),
        ".*".prop_map(HeaderValue::text),
        ".*".prop_map(HeaderValue::ShortText),
        any::<Vec<u8>>().prop_map(|bytes| HeaderValue::Bytes(bytes.into())),
        any::<u64>().prop_map(HeaderValue::Timestamp),
    ]
}

fn any_value() -> impl Strategy<Value = HeaderValue> {
    plain().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(HeaderValue::List),
            prop::collection::vec((".*", inner), 0..4)
                .prop_map(|entries| HeaderValue::Table(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Compared as they are printed, bits of floats besides: a NaN is equal to nothing.
    #[test]
    fn whatever_goes_in_comes_out(entries in prop::collection::vec((".*", any_value()), 0..6)) {
        let headers: Headers = entries.into_iter().collect();
        let text = encode(&headers).unwrap();
        let back = text.as_deref().map_or_else(Headers::new, |text| decode(text).unwrap());
        prop_assert_eq!(format!("{back:?}"), format!("{headers:?}"));
        prop_assert_eq!(encode(&back).unwrap(), text);
    }
}

fn nested(levels: usize) -> Headers {
    let deep = (0..levels).fold(HeaderValue::Bool(true), |inner, level| match level % 2 {
        0 => HeaderValue::Table([("n".to_owned(), inner)].into_iter().collect()),
        _ => HeaderValue::List(vec![inner]),
    });
    [("deep".to_owned(), deep)].into_iter().collect()
}

#[test]
fn what_is_taken_can_be_read_again_however_deep() {
    let deepest = nested(DEEPEST);
    let text = encode(&deepest).unwrap().unwrap();
    assert_eq!(decode(&text), Some(deepest));
    assert_eq!(encode(&nested(DEEPEST + 1)), Err(TooDeep));
}

#[test]
fn what_others_wrote_is_not_guessed() {
    for text in
        ["", "{}", "[1]", r#"[["a","u8",256]]"#, r#"[["a","bytes-hex","abc"]]"#, r#"[["a","what",1]]"#]
    {
        assert_eq!(decode(text), None, "{text}");
    }
}
