//! What a host would refuse of a component before it asks what the component does: its profile, and a pin.

use anyhow::bail;
use reprise::{
    Pins, PolicyChoice, PolicyDescription, PolicyProfile,
    wasm::{Form, Inspection, Limits, inspect},
};

use super::{
    Compiler, Subject,
    inspect::{kind, profile},
    text::shown,
};

/// How an operator lets a host take components of this profile.
pub(super) fn allowed_by(profile: PolicyProfile) -> String {
    format!("--policy-profile {profile}, or policy-profile = \"{profile}\" in a configuration")
}

/// Refuses a policy that needs a wider profile than `given`, or calls itself by a name that is pinned to another component. What cannot be
/// read or makes no policy is left to whoever loads it.
///
/// # Errors
/// When it is refused, with what to do about it.
pub fn check_terms(choice: &PolicyChoice, given: PolicyProfile, pins: &Pins) -> anyhow::Result<()> {
    let Some((subject, inspection)) = look(choice) else { return Ok(()) };
    let origin = &subject.origin;
    if let Some(needed) = needed(&inspection).filter(|needed| *needed > given) {
        bail!(
            "{origin} does not load under the profile `{given}`: it needs the profile `{needed}`: {}",
            allowed_by(needed)
        );
    }
    if *pins == Pins::default() {
        return Ok(());
    }
    let Some(name) = describe(&subject, &inspection).map(|description| description.name) else { return Ok(()) };
    match pins.get(&name) {
        Some(wanted) if wanted != inspection.digest => bail!(
            "{origin} calls itself `{}`, which is pinned to the component with the BLAKE3 digest {wanted}; this one has {}: use the \
             pinned file, or change the pin if the new one is meant",
            shown(&name),
            inspection.digest
        ),
        _ => Ok(()),
    }
}

/// The name by which a policy is pinned; `None` if it cannot be asked.
pub fn name_of(choice: &PolicyChoice) -> Option<String> {
    let (subject, inspection) = look(choice)?;
    describe(&subject, &inspection).map(|description| description.name)
}

fn look(choice: &PolicyChoice) -> Option<(Subject, Inspection)> {
    let subject = Subject::read(choice).ok()?;
    let inspection = inspect(&subject.bytes).ok()?;
    Some((subject, inspection))
}

/// The strictest profile whose features and size a component keeps to; `None` if there is none.
fn needed(inspection: &Inspection) -> Option<PolicyProfile> {
    let features = *inspection.profile.as_ref().ok().filter(|_| inspection.form == Form::Component)?;
    let fits =
        |profile: &PolicyProfile| *profile >= features && inspection.bytes <= Limits::of(*profile).component_bytes;
    PolicyProfile::ALL.into_iter().find(fits)
}

/// What it says of itself. Nothing else of it is run.
fn describe(subject: &Subject, inspection: &Inspection) -> Option<PolicyDescription> {
    let engine = Compiler::of_user(|_| {}).engine(&Limits::of(profile(inspection))).ok()?;
    engine.describe(&subject.bytes, &subject.origin, kind(inspection).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_not_sent_to_a_profile_that_does_not_take_it() {
        let needed = |bytes: &[u8]| needed(&inspect(bytes).unwrap());
        let empty = b"\0asm\x0d\0\x01\0";
        assert_eq!(needed(empty), Some(PolicyProfile::Integer));
        assert_eq!(needed(b"\0asm\x01\0\0\0"), None, "a module is none");
        // A custom section without a name, 2^24 and 2^26 bytes long: over the limit of most profiles, and of all.
        for (length, needs) in
            [([0x80, 0x80, 0x80, 0x08], Some(PolicyProfile::Interpreted)), ([0x80, 0x80, 0x80, 0x20], None)]
        {
            let bytes = (usize::from(length[3]) << 21) - 1;
            let section = [&[0][..], &length, &[0], &vec![0; bytes]].concat();
            assert_eq!(needed(&[empty, section.as_slice()].concat()), needs);
        }
    }
}
