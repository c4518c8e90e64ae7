// SPDX-License-Identifier: Apache-2.0
#pragma once
// A resumed run that validates on other images, or preprocesses them otherwise.  Its scores from before belong to what
// was validated then: they are neither comparable with those of the coming epochs, nor numbers of the present images.
#include <string>
#include <vector>

#include "vitrail/models/preprocessing.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/counters_internal.h"

namespace vitrail::train {

// How images become inputs, to tell whether a resumed run does the same:
// "32×32, bicubic, crop_pct 0.9 (center), mean 0.5,0.5,0.5, std 0.5,0.5,0.5, EXIF orientation applied"
std::string preprocessing_text(const models::Preprocessing& preprocessing, bool exif);

// For a run that goes on.  Forgets the best score, if the validation images or the preprocessing are not those of the
// checkpoint, so that the best epoch is chosen among the coming ones and patience counts from them.  Warns why.  What
// an older checkpoint does not tell counts as unchanged.
void forget_best_of_other_validation(const CheckpointState& before, const std::vector<ImageSet>& image_sets,
                                     const std::string& preprocessing, Counters& counters);

// For a run without further epochs that was stopped before its end evaluated the best weights.  Throws Error, beginning
// with `where`, for another preprocessing than that of these weights.
void check_preprocessing_of_best(const CheckpointState& before, const std::string& preprocessing,
                                 const std::string& where);

}  // namespace vitrail::train
