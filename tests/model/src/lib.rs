//! A DeepSeek-V4 at toy size: the real architecture with random weights, in `f64`, on one thread. On one machine its
//! numbers are a function of weights and tokens alone, to the last bit and however the tokens are cut into calls, so a
//! test can ask whether a restored cache continues exactly as a cold prefill does.
//!
//! The architecture is the one of `transformers` (`models/deepseek_v4`) without YaRN, plus the draft layer of the
//! published checkpoints. Files of results of `transformers` itself, in `data/`, hold it to that.
//!
//! ```
//! use reprise_model::{Model, Shape, State};
//!
//! let shape = Shape::small(16, 16);
//! let model = Model::random(shape.clone(), 1);
//! let tokens: Vec<u32> = (0..40).map(|i| i * 7 % 64).collect();
//!
//! let mut cold = State::new(&shape);
//! let whole = model.forward(&mut cold, &tokens);
//!
//! let mut chunked = State::new(&shape);
//! model.forward(&mut chunked, &tokens[..33]);
//! assert_eq!(model.forward(&mut chunked, &tokens[33..]), whole[33..]);
//! assert_eq!(chunked, cold);
//! ```

mod attention;
mod block;
mod compressor;
mod draft;
mod experts;
mod head;
mod hyper_connection;
mod indexer;
mod matrix;
mod model;
mod norm;
mod rotary;
mod rows;
mod shape;
mod state;
mod weights;

pub use model::{Model, Output};
pub use rows::Rows;
pub use shape::{Attention, Shape};
pub use state::{CompressorState, DraftState, LayerState, State};
