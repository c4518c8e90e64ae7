// SPDX-License-Identifier: Apache-2.0
#pragma once
// The result and the progress of a run as JSON objects, for the program and the bindings.
#include <string>

#include "vitrail/train/trainer.h"

namespace vitrail::train {

// "epochs", "steps", "held_out_top1" (null: nothing was validated), "best_epoch" (null for a probe), "seconds", and
// what the run has of "held_out_images", "cross_validated_top1" and "cross_validated_images" (of a probe), "test_top1",
// "test_top5", "test_images", "skipped_images", "skipped_steps", "processes" and the times of their exchange.  An
// accuracy has its 95 % Wilson interval beside it: "held_out_top1_interval".  With several labels per image: "map" and
// "f1" instead of "top1" and "top5", and for segmentation "click_iou" and "box_iou".
std::string result_json(const TrainingResult& result);

// "phase" ("train", "validate", "test", "features" or "search"), "epoch", "epochs", "step", "steps", "loss", "accuracy"
// (null for images with several labels), "images_per_second", "seconds_left".
std::string progress_json(const Progress& progress);

// "epoch", "step", "train_loss", "train_top1", "val_loss", "val_top1" (both null if nothing was validated), "best",
// "seconds".
std::string epoch_json(const EpochResult& epoch);

}  // namespace vitrail::train
