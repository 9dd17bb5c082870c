//! Many sequences over one model: samplers in, finished samplers out.

use crate::ids::TokenId;
use crate::runtime::model::Model;
use crate::runtime::sampler::{ConstrainedSampler, GenerateError, WrongRows};
use crate::step_error::StepError;

/// Generates until every sequence is complete, asking the model for as many at a time as it likes
/// ([`Model::batch_size`]).
///
/// What a sequence becomes depends on its own sampler and the rows of the model alone, not on the
/// others. One that fails stays where it is, and the others go on; its error is at its place.
///
/// # Errors
///
/// [`GenerateError::Model`] what the model says, [`GenerateError::Rows`] if it gives too few or too many
/// rows; the sequences stay where they are.
pub fn generate_each<M: Model>(
    samplers: &mut [ConstrainedSampler],
    model: &mut M,
) -> Result<Vec<Result<(), StepError>>, GenerateError<M::Error>> {
    run(samplers, model, |sampler, row, _| sampler.next_token(row).map(drop))
}

/// As [`generate_each`], with the step of one sequence given: its sampler, a row, its number.
pub(super) fn run<M: Model>(
    samplers: &mut [ConstrainedSampler],
    model: &mut M,
    mut step: impl FnMut(&mut ConstrainedSampler, &[f32], usize) -> Result<(), StepError>,
) -> Result<Vec<Result<(), StepError>>, GenerateError<M::Error>> {
    let mut results: Vec<Result<(), StepError>> = samplers.iter().map(|_| Ok(())).collect();
    let mut rows = Vec::new();
    let size = model.batch_size().max(1);
    for first in (0..samplers.len()).step_by(size) {
        let batch = first..samplers.len().min(first + size);
        loop {
            let going: Vec<usize> = batch
                .clone()
                .filter(|&i| results[i].is_ok() && !samplers[i].is_finished())
                .collect();
            if going.is_empty() {
                break;
            }
            let sequences: Vec<&[TokenId]> = going.iter().map(|&i| samplers[i].tokens()).collect();
            model.logits_each(&sequences, &mut rows).map_err(GenerateError::Model)?;
            WrongRows::check(going.len(), &rows).map_err(GenerateError::Rows)?;
            for (&i, row) in going.iter().zip(&rows) {
                results[i] = step(&mut samplers[i], row, i);
            }
        }
    }
    Ok(results)
}
