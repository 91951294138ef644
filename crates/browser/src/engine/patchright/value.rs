//! Converts a script value from the driver's format to JSON. Pure.
//!
//! The driver's format is richer than JSON: values without JSON become null, as in `JSON.stringify` inside an array.
//! A repeated object is written once and referenced; here it is repeated again.

use serde_json::{Map, Number, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum of values after references are expanded. A few nested references could otherwise fill the memory.
const VALUES_MAX: usize = 1_000_000;
/// Maximum nesting. `serde_json` reads 128 levels, and each of ours takes two of its levels.
const DEPTH_MAX: usize = 128;

/// The value, or what is wrong with it.
pub(crate) fn read(written: &Value) -> Result<Value, &'static str> {
    let mut wanted = BTreeSet::new();
    find_references(written, &mut wanted);
    Reader { wanted, seen: BTreeMap::new(), left: VALUES_MAX }.read(written, 0)
}

/// Finds referenced ids: only those are kept. The parsed text has limited depth, so this recursion has too.
fn find_references(written: &Value, wanted: &mut BTreeSet<u64>) {
    match written {
        Value::Object(fields) => {
            wanted.extend(fields.get("ref").and_then(Value::as_u64));
            fields.values().for_each(|value| find_references(value, wanted));
        }
        Value::Array(items) => items.iter().for_each(|item| find_references(item, wanted)),
        _ => {}
    }
}

struct Reader {
    wanted: BTreeSet<u64>,
    /// Expanded values by the driver's id, with their number of values.
    seen: BTreeMap<u64, (Value, usize)>,
    left: usize,
}

impl Reader {
    fn read(&mut self, written: &Value, depth: usize) -> Result<Value, &'static str> {
        self.spend(1)?;
        if depth > DEPTH_MAX {
            return Err("the value is too deep");
        }
        let Some(fields) = written.as_object() else { return Err("the value has an invalid form") };
        if let Some(number) = fields.get("ref").and_then(Value::as_u64) {
            let Some((value, size)) = self.seen.get(&number) else { return Err("the value refers to itself") };
            let (value, size) = (value.clone(), *size);
            self.spend(size)?;
            return Ok(value);
        }
        if let Some(items) = fields.get("a").and_then(Value::as_array) {
            let before = self.left;
            let items = items.iter().map(|item| self.read(item, depth + 1)).collect::<Result<Vec<_>, _>>()?;
            return Ok(self.remember(fields, Value::Array(items), before));
        }
        if let Some(entries) = fields.get("o").and_then(Value::as_array) {
            let before = self.left;
            let mut object = Map::new();
            for entry in entries {
                let key = entry["k"].as_str().ok_or("a key is not text")?;
                // Omitted where JSON omits it.
                if entry["v"]["v"] != "undefined" {
                    object.insert(key.to_owned(), self.read(&entry["v"], depth + 1)?);
                }
            }
            return Ok(self.remember(fields, Value::Object(object), before));
        }
        Ok(single(fields))
    }

    fn remember(&mut self, fields: &Map<String, Value>, value: Value, before: usize) -> Value {
        if let Some(number) = fields.get("id").and_then(Value::as_u64).filter(|number| self.wanted.contains(number)) {
            self.seen.insert(number, (value.clone(), before - self.left));
        }
        value
    }

    fn spend(&mut self, count: usize) -> Result<(), &'static str> {
        self.left = self.left.checked_sub(count).ok_or("the value has too many parts")?;
        Ok(())
    }
}

fn single(fields: &Map<String, Value>) -> Value {
    if let Some(number) = fields.get("n") {
        return whole(number);
    }
    if fields.get("v").is_some_and(|word| word == "-0") {
        return Value::from(0);
    }
    // Texts, dates and addresses are texts; the rest has no JSON form.
    ["s", "b", "d", "u"].iter().find_map(|key| fields.get(*key).cloned()).unwrap_or(Value::Null)
}

/// A whole number stays an integer: `1.0` would not parse as a count.
fn whole(number: &Value) -> Value {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT_MAX => {
            Value::Number(Number::from(float as i64))
        }
        _ => number.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_the_json_that_it_would_be() {
        let written = json!({"o": [
            {"k": "a", "v": {"a": [{"n": 1}, {"v": "null"}, {"v": "undefined"}, {"v": "NaN"}, {"s": "x"}], "id": 2}},
            {"k": "d", "v": {"d": "2026-11-17T01:01:20.282Z"}},
            {"k": "u", "v": {"v": "undefined"}},
            {"k": "t", "v": {"b": true}},
            {"k": "z", "v": {"v": "-0"}},
            {"k": "f", "v": {"n": 1.5}},
            {"k": "again", "v": {"ref": 2}},
            {"k": "r", "v": {"r": {"p": "a", "f": "g"}}},
        ], "id": 1});
        let a = json!([1, null, null, null, "x"]);
        let expected = json!({
            "a": a, "d": "2026-11-17T01:01:20.282Z", "t": true, "z": 0, "f": 1.5, "again": a, "r": null,
        });
        assert_eq!(read(&written).unwrap(), expected);
        assert_eq!(read(&json!({"n": 3.0})).unwrap(), json!(3));
    }

    #[test]
    fn nothing_that_a_driver_writes_is_too_strange_or_grows_without_end() {
        assert!(read(&json!({"o": [{"k": "c", "v": {"ref": 1}}], "id": 1})).is_err(), "a circle");
        for strange in [json!(null), json!(7), json!({"o": [7]}), json!({"o": [{"k": 1, "v": {}}]}), json!({"ref": 9})]
        {
            assert!(read(&strange).is_err(), "{strange}");
        }
        assert_eq!(read(&json!({})).unwrap(), Value::Null);
        // Each is the one before twice.
        let mut doubling = vec![json!({"a": [], "id": 0})];
        doubling.extend((1..40).map(|at| json!({"a": [{"ref": at - 1}, {"ref": at - 1}], "id": at})));
        assert_eq!(read(&json!({"a": doubling})), Err("the value has too many parts"));
        let mut deep = json!({"n": 1});
        for _ in 0..200 {
            deep = json!({"a": [deep]});
        }
        assert_eq!(read(&deep), Err("the value is too deep"));
    }
}
