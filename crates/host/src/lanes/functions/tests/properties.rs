//! Properties of random types and values.

use super::*;
use proptest::prelude::*;

/// Types whose names fit the text form.
fn wit_types() -> impl Strategy<Value = WitType> {
    use IntegerType as I;
    let integer =
        prop::sample::select(vec![I::S8, I::U8, I::S16, I::U16, I::S32, I::U32, I::S64, I::U64]);
    let names = || prop::collection::btree_set("[a-z]{1,5}(-[a-z][a-z0-9]{0,3})?", 1..12);
    let names = move || names().prop_map(|names| names.into_iter().map(|it| (it, ())).collect());
    let leaf = prop_oneof![
        Just(WitType::Bool),
        integer.prop_map(WitType::Integer),
        Just(WitType::Float32),
        Just(WitType::Float64),
        Just(WitType::Char),
        Just(WitType::String),
        names().prop_map(WitType::Enum),
        names().prop_map(WitType::Flags),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = "[a-z]{1,5}(-[a-z][a-z0-9]{0,3})?";
        let payload = || prop::option::of(inner.clone());
        let boxed = || payload().prop_map(|ty| ty.map(Box::new));
        prop_oneof![
            inner.clone().prop_map(list),
            inner.clone().prop_map(option),
            prop::collection::vec(inner.clone(), 1..4).prop_map(WitType::Tuple),
            prop::collection::btree_map(name, inner.clone(), 1..4)
                .prop_map(|fields| WitType::Record(fields.into_iter().collect())),
            prop::collection::btree_map(name, payload(), 1..4)
                .prop_map(|cases| WitType::Variant(cases.into_iter().collect())),
            (boxed(), boxed()).prop_map(|(ok, err)| WitType::Result { ok, err }),
        ]
    })
}

/// Values of a type.
fn values_of(ty: &WitType) -> BoxedStrategy<Val> {
    let payload = |ty: Option<&WitType>| match ty {
        Some(ty) => values_of(ty).prop_map(|value| Some(Box::new(value))).boxed(),
        None => Just(None).boxed(),
    };
    match ty {
        WitType::Bool => any::<bool>().prop_map(Val::Bool).boxed(),
        WitType::Integer(IntegerType::S8) => any::<i8>().prop_map(Val::S8).boxed(),
        WitType::Integer(IntegerType::U8) => any::<u8>().prop_map(Val::U8).boxed(),
        WitType::Integer(IntegerType::S16) => any::<i16>().prop_map(Val::S16).boxed(),
        WitType::Integer(IntegerType::U16) => any::<u16>().prop_map(Val::U16).boxed(),
        WitType::Integer(IntegerType::S32) => any::<i32>().prop_map(Val::S32).boxed(),
        WitType::Integer(IntegerType::U32) => any::<u32>().prop_map(Val::U32).boxed(),
        WitType::Integer(IntegerType::S64) => any::<i64>().prop_map(Val::S64).boxed(),
        WitType::Integer(IntegerType::U64) => any::<u64>().prop_map(Val::U64).boxed(),
        WitType::Float32 => prop::num::f32::ANY.prop_map(Val::Float32).boxed(),
        WitType::Float64 => prop::num::f64::ANY.prop_map(Val::Float64).boxed(),
        WitType::Char => any::<char>().prop_map(Val::Char).boxed(),
        WitType::String => any::<String>().prop_map(Val::String).boxed(),
        WitType::List(ty) => prop::collection::vec(values_of(ty), 0..4).prop_map(Val::List).boxed(),
        WitType::Tuple(types) => {
            types.iter().map(values_of).collect::<Vec<_>>().prop_map(Val::Tuple).boxed()
        }
        WitType::Record(fields) => {
            let names: Vec<_> = fields.iter().map(|(name, _)| name.clone()).collect();
            let values: Vec<_> = fields.iter().map(|(_, ty)| values_of(ty)).collect();
            let record = move |values: Vec<Val>| {
                Val::Record(names.clone().into_iter().zip(values).collect())
            };
            values.prop_map(record).boxed()
        }
        WitType::Variant(cases) => {
            let case = |(name, ty): (&str, &Option<WitType>)| {
                let name = name.to_owned();
                payload(ty.as_ref()).prop_map(move |value| Val::Variant(name.clone(), value))
            };
            prop::strategy::Union::new(cases.iter().map(case)).boxed()
        }
        WitType::Enum(names) => {
            let names: Vec<_> = names.iter().map(|(name, ())| name.to_owned()).collect();
            prop::sample::select(names).prop_map(Val::Enum).boxed()
        }
        WitType::Option(ty) => {
            let some = values_of(ty).prop_map(|value| Val::Option(Some(Box::new(value))));
            prop_oneof![Just(Val::Option(None)), some].boxed()
        }
        WitType::Result { ok, err } => {
            let ok = payload(ok.as_deref()).prop_map(|value| Val::Result(Ok(value)));
            let err = payload(err.as_deref()).prop_map(|value| Val::Result(Err(value)));
            prop_oneof![ok, err].boxed()
        }
        WitType::Flags(names) => {
            let names: Vec<_> = names.iter().map(|(name, ())| name.to_owned()).collect();
            let most = names.len();
            prop::sample::subsequence(names, 0..=most).prop_map(Val::Flags).boxed()
        }
    }
}

fn typed_values() -> impl Strategy<Value = (WitType, Val)> {
    wit_types().prop_flat_map(|ty| values_of(&ty).prop_map(move |value| (ty.clone(), value)))
}

/// Any JSON, with keys and strings that types use.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = prop_oneof![
            "[a-c]",
            Just("tag".to_owned()),
            Just("val".to_owned()),
            Just("ok".to_owned())
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn values_are_read_back_from_json((ty, value) in typed_values()) {
        let text = values::json(&ty, &value, BYTES).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        let again = values::read(&ty, &json, BYTES).unwrap();
        prop_assert_eq!(values::json(&ty, &again, BYTES).unwrap(), text);
        prop_assert_eq!(again, value);
    }

    #[test]
    fn results_match_their_schema((ty, value) in typed_values()) {
        let ty = record(&[("it", ty)]);
        let value = Val::Record(vec![("it".to_owned(), value)]);
        let json = serde_json::from_str(&values::json(&ty, &value, BYTES).unwrap()).unwrap();
        let schema = Schema::from(schema::of_result(&ty).unwrap());
        prop_assert_eq!(schema.misfits(&json, &without_end).unwrap(), []);
    }

    #[test]
    fn any_json_is_converted_or_refused(ty in wit_types(), json in any_json()) {
        if let Ok(value) = values::read(&ty, &json, BYTES) {
            let text = values::json(&ty, &value, BYTES).unwrap();
            let json: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(values::read(&ty, &json, BYTES).unwrap(), value);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn guests_return_the_values_they_receive((ty, value) in typed_values()) {
        let guest = Guest::new(&echo(&ty));
        let [function] = &guest.functions.functions[..] else { panic!("one function") };
        let list = list(ty);
        prop_assert_eq!(&function.parameters[..], [("it".to_owned(), list.clone())]);
        let text = values::json(&list, &Val::List(vec![value]), BYTES).unwrap();
        let arguments = format!("{{\"it\":{text}}}");
        let arguments: Value = serde_json::from_str(&arguments).unwrap();
        prop_assert_eq!(success(guest.call("call", &arguments)), text);
    }
}
