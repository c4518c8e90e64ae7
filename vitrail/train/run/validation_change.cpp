// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/validation_change_internal.h"

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/train/run/image_sets_internal.h"

namespace vitrail::train {
namespace {

bool is_other_preprocessing(const CheckpointState& before, const std::string& preprocessing) {
  return !before.preprocessing.empty() && before.preprocessing != preprocessing;
}

}  // namespace

std::string preprocessing_text(const models::Preprocessing& of, bool exif) {
  std::string text;
  if (of.input_size) text += str((*of.input_size)[1], "×", (*of.input_size)[0]);
  if (of.interpolation) text += ", " + *of.interpolation;
  if (of.crop_pct) text += str(", crop_pct ", *of.crop_pct, " (", of.crop_mode, ")");
  if (of.mean) text += ", mean " + join(*of.mean, ",");
  if (of.std) text += ", std " + join(*of.std, ",");
  return text + (exif ? ", EXIF orientation applied" : "");
}

void forget_best_of_other_validation(const CheckpointState& before, const std::vector<ImageSet>& image_sets,
                                     const std::string& preprocessing, Counters& counters) {
  if (counters.best.score < 0) return;  // nothing was validated
  std::string changes = change_of_images(before.image_sets, image_sets, kValidationSet);
  if (is_other_preprocessing(before, preprocessing))
    changes += str("\n  preprocessing: ", before.preprocessing, " → ", preprocessing);
  if (changes.empty()) return;
  warn(str(
      "the best epoch so far, ", counters.best_epoch,
      ", is forgotten and the best is chosen among the coming epochs, because it was validated otherwise:", changes));
  counters.best = {};
  counters.best_epoch = 0;
  counters.best_is_average = false;
}

void check_preprocessing_of_best(const CheckpointState& before, const std::string& preprocessing,
                                 const std::string& where) {
  if (!is_other_preprocessing(before, preprocessing)) return;
  throw Error(where, str("more epochs, or the preprocessing of the best weights (", before.preprocessing, ")"),
              preprocessing);
}

}  // namespace vitrail::train
