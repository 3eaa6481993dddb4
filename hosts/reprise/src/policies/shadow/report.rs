//! What a shadow found.

use serde::Serialize;

use crate::{group::Group, policies::PolicyStatus};

/// What policies made of the requests since a shadow began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ShadowFigures {
    /// Tokens of the prompts.
    pub prompt_tokens: u64,
    /// Tokens covered by leading resident blocks.
    pub matched_tokens: u64,
    /// Tokens whose entries were taken from the cache: hit tokens.
    pub adopted_tokens: u64,
    /// Of those, tokens computed again to rebuild windows.
    pub replayed_tokens: u64,
    /// Payload bytes saved, by group.
    pub written_bytes: [u64; Group::ALL.len()],
    /// Payload bytes that plans load, by group.
    pub loaded_bytes: [u64; Group::ALL.len()],
}

impl ShadowFigures {
    /// Tokens that needed no forward pass.
    pub fn saved_tokens(&self) -> u64 {
        self.adopted_tokens - self.replayed_tokens
    }
}

/// What candidates would have done, beside what the policies in the seats did, for the same requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ShadowReport {
    /// Requests gone through.
    pub requests: u64,
    /// How often the shadow was too far behind to be told of a request, or of what it saved: figures of such requests are missing.
    pub missed_requests: u64,
    /// The policies in the seats.
    pub active: ShadowFigures,
    /// The candidates, or the policies that play a role without one.
    pub shadow: ShadowFigures,
    /// How the candidates are doing.
    pub policies: [PolicyStatus; 2],
    /// Requests in a row, up to the last, after which the candidates led by the margin of the promotion rule.
    pub leading_requests: u64,
    /// Whether the candidates took the seats.
    pub promoted: bool,
    /// Why a promotion failed, the last time.
    pub promotion_failure: Option<String>,
}

impl ShadowReport {
    /// Saved tokens that the candidates are ahead of the policies in the seats, in parts per million of the prompts' tokens.
    pub fn lead_ppm(&self) -> i64 {
        let lead = i128::from(self.shadow.saved_tokens()) - i128::from(self.active.saved_tokens());
        let prompt_tokens = i128::from(self.active.prompt_tokens.max(1));
        i64::try_from(lead * 1_000_000 / prompt_tokens).unwrap_or(0)
    }
}
