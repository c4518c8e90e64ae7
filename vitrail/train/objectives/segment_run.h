// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training of Segment Anything on images with instance masks (Kirillov et al. 2023).
#include "vitrail/train/trainer.h"

namespace vitrail::train {

// Trains the prompt encoder and the mask decoder, and with recipe.segment->train_encoder the image encoder, with
// simulated clicks, boxes and corrections.  After an epoch it evaluates sam::evaluate_masks() on the validation images.
// The folder gets what train() writes, model/ and last/ for `vitrail segment -m`.  In results, top1 is the mean IoU for
// one click (the best of the masks), top5 that for a box, and the validation loss is 1 − the mean of those two and of
// that for three clicks.  Throws Error as train(), and for several processes.
TrainingResult train_segment(const Recipe& recipe, const TrainerOptions& options,
                             const TrainerCallbacks& callbacks = {});

}  // namespace vitrail::train
