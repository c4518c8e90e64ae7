// SPDX-License-Identifier: Apache-2.0
#pragma once
// Linear probe: a logistic regression on the features of a pretrained model (Alain & Bengio 2016; Radford et al. 2021,
// CLIP, section 3.2), for few images and little time.
#include "vitrail/train/trainer.h"

namespace vitrail::train {

// Replaces the head of the model `recipe.model.init` by a logistic regression on the head's input.  It computes the
// features of the training images once, without augmentation, chooses the L2 penalty by cross-validation
// (analysis/strength_search.h), and evaluates the model on the validation and test images of the recipe.  Images are
// held out for validation only if recipe.data.holdout says so.
//
// The folder gets recipe.json, metrics.csv, tensorboard/, model/, report.html and summary.json.  TrainingResult has one
// epoch and the iterations of L-BFGS as steps; best_top1 is the accuracy on the validation images, without these the
// cross-validated one.  With options.resume, a finished probe is computed again.
// Throws Error as train(), for several processes, and for a folder that has a run already if `resume` is false.
TrainingResult train_probe(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks = {});

}  // namespace vitrail::train
