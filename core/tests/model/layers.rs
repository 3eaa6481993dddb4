//! Layer numbers as text.

use std::collections::BTreeSet;

use proptest::{collection, prelude::*};
use reprise_core::model::Layers;

#[test]
fn text_names_the_layers_it_seems_to() {
    let cases: [(&str, &[u16], &str); 7] = [
        ("5", &[5], "5"),
        ("0-3", &[0, 1, 2, 3], "0-3"),
        ("0-1,3-9/2", &[0, 1, 3, 5, 7, 9], "0-1,3-9/2"),
        (" 1 , 2 - 6 / 2 ", &[1, 2, 4, 6], "1-2,4,6"),
        ("0,2", &[0, 2], "0,2"),
        ("7-7", &[7], "7"),
        ("0,2,3,4095", &[0, 2, 3, 4095], "0,2-3,4095"),
    ];
    for (text, numbers, canonical) in cases {
        let layers: Layers = text.parse().unwrap();
        assert_eq!(layers.iter().collect::<Vec<_>>(), numbers, "{text}");
        assert_eq!(layers.to_string(), canonical, "{text}");
    }
}

#[test]
fn text_that_names_no_layers_is_refused_with_its_reason() {
    let cases = [
        ("", "no layers given: a type needs at least one layer"),
        ("0,,2", "`` is neither a layer number nor a range FIRST-LAST or FIRST-LAST/STEP"),
        ("a-3", "`a-3` is neither a layer number nor a range FIRST-LAST or FIRST-LAST/STEP"),
        ("-1", "`-1` is neither a layer number nor a range FIRST-LAST or FIRST-LAST/STEP"),
        ("0-70000", "`0-70000` is neither a layer number nor a range FIRST-LAST or FIRST-LAST/STEP"),
        ("5-3", "range `5-3` must step from its first layer up to exactly its last"),
        ("0-5/2", "range `0-5/2` must step from its first layer up to exactly its last"),
        ("0-5/0", "range `0-5/0` must step from its first layer up to exactly its last"),
        ("3,1", "layer 1 comes after layer 3: list each layer once, in ascending order"),
        ("0-4,4", "layer 4 comes after layer 4: list each layer once, in ascending order"),
        ("4096", "layer 4096 is too high: the highest is 4095"),
    ];
    for (text, message) in cases {
        assert_eq!(text.parse::<Layers>().unwrap_err().to_string(), message, "{text}");
    }
}

proptest! {
    #[test]
    fn no_layer_is_lost_on_the_way_through_text(numbers in collection::btree_set(0_u16..60, 1..30)) {
        let layers = Layers::new(numbers.iter().copied()).unwrap();
        prop_assert_eq!(&layers.to_string().parse::<Layers>().unwrap(), &layers);
        prop_assert_eq!(layers.iter().collect::<BTreeSet<_>>(), numbers.clone());
        for (index, layer) in numbers.into_iter().enumerate() {
            prop_assert_eq!(layers.index_of(layer), Some(index));
        }
        prop_assert_eq!(layers.index_of(60), None);
    }
}
