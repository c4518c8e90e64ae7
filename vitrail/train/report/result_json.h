// SPDX-License-Identifier: Apache-2.0
#pragma once
// The result and the progress of a run as JSON objects, for the program and the bindings.
#include <string>

#include "vitrail/train/trainer.h"

namespace vitrail::train {

// "epochs", "steps", "held_out_top1" (null: nothing was validated), "best_epoch" (null for a probe), "seconds", and
// what the run has of "held_out_images", "baselines" (accuracies of "knn" and "probe" on these images),
// "cross_validated_top1" and "cross_validated_images" (of a probe), "test_top1", "test_top5", "test_images",
// "skipped_images", "skipped_steps", "processes" and the times of their exchange.  "top1" and "top5" stand for the
// names of the objective's metrics: "map" and "f1" with several labels per image, "click_iou" and "box_iou" for
// segmentation.  A share of the images has its 95 % Wilson interval beside it: "held_out_top1_interval".
std::string result_json(const TrainingResult& result);

// "phase" ("train", "validate", "test", "features" or "search"), "epoch", "epochs", "step", "steps", "loss", "accuracy"
// (null where training measures no score), "images_per_second", "seconds_left".
std::string progress_json(const Progress& progress);

// "epoch", "step", "train_loss", "train_top1", "val_loss", "val_top1" (both null if nothing was validated), "best",
// "seconds".  "top1" is the first score, whatever the objective calls it; in training 0 if it measures none.
std::string epoch_json(const EpochResult& epoch);

}  // namespace vitrail::train
