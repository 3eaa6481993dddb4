//! `reprise model`.

use clap::Subcommand;

/// Say what a model's cache is made of and what it takes.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// The types of a model's cache, bytes per token, records, and what checkpoints cost
    #[command(after_help = SHOW_HELP)]
    Show {
        /// A preset, with options behind a colon (`v4-pro:indexer=fp8`), or a .toml file
        model: String,
        /// Tokens per block, a multiple of the model's compression ratios
        #[arg(long, value_name = "B", default_value_t = 128)]
        block_tokens: u32,
        /// Print the result as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// The presets and their options
    #[command(after_help = "Exit status: 0 done.")]
    List,
}

const SHOW_HELP: &str = "\
Examples:
  reprise model show v4-pro
  reprise model show v4-flash:indexer=fp8,draft=on --block-tokens 256
  reprise model show mine.toml --json

Exit status: 0 done; 2 there is no such model, or the block does not fit it.";
