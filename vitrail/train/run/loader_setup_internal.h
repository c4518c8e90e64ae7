// SPDX-License-Identifier: Apache-2.0
#pragma once
// The data loaders of a run.
#include "vitrail/data/loader/loader.h"
#include "vitrail/train/run/process_group_internal.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {

// Options of the training loader.  Each process of the group gets its share of every batch.  `channels`: of the model's
// input.  `threads`: compute threads, from which the number of loader threads follows if the recipe does not set it.
data::LoaderOptions training_options(const Recipe& recipe, const RunData& data, const image::EvalTransform& transform,
                                     int64_t channels, int threads, const ProcessGroup& group);

// A loader of the images of a subset in order and without augmentation; other options are those of training.
data::Loader evaluation_loader(const Subset& subset, const data::LoaderOptions& training);

}  // namespace vitrail::train
