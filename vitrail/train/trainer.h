// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training of a model from a recipe.
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/dist/communicator.h"
#include "vitrail/train/objectives/scores.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// Progress of a run, reported after each batch of training, validation and testing.
struct Progress {
  enum class Phase { train, validate, test, features, search };  // the last is a probe's
  Phase phase = Phase::train;
  int64_t epoch = 0, epochs = 0;  // current epoch, from 1, and number of epochs
  int64_t step = 0, steps = 0;    // batches done and in total, of the epoch or of the evaluated dataset
  double loss = 0;                // mean of the epoch so far
  std::vector<Score> scores{};    // those of the epoch so far, where training measures any
  double images_per_second = 0;   // 0 for a phase without images of its own: search
  double data_wait = 0;           // fraction of the training time spent waiting for the data loader
  double seconds_left = 0;        // estimate: of training for the run, of another phase for its end
};

struct EpochResult {
  int64_t epoch = 0, step = 0;                        // epochs and optimiser steps so far
  Evaluation train{};                                 // without scores if training measures none
  std::optional<Evaluation> validation{}, average{};  // for the weights, and the EMA weights if there are any
  bool best = false;                                  // the best weights of the run so far
  double seconds = 0;                                 // training time of the run, including previous resumptions
  std::string text{};  // the validation for a line: "  validation: loss 0.51  top-1 …"; empty without
};

// Rank 0 calls all callbacks; the other processes call only `stop`.
struct TrainerCallbacks {
  std::function<void(const Progress&)> progress{};
  std::function<void(const EpochResult&)> epoch{};    // after each epoch, also of a second training: data.retrain
  std::function<void(const std::string&)> message{};  // lines for a log
  // Called after each step and each evaluation batch.  True in any process makes all processes save and return.
  std::function<bool()> stop{};
};

struct TrainerOptions {
  std::filesystem::path folder{};  // folder of the run, created if missing
  bool resume = false;             // continue from the folder's checkpoint, if there is one; else begin
  bool allow_changes = false;      // if the recipe has changed, warn instead of throwing
  bool force = false;              // take settings that are known to destroy a pretrained model
  int threads = 0;                 // compute threads; 0: all available cores
  // In seconds; 0: none.  If the recipe's epochs would take longer, their number is reduced after an epoch, and the
  // schedule of the learning rate ends with them.  At least one epoch is trained.  Not for a probe.
  double time_limit = 0;
  std::shared_ptr<dist::Communicator> communicator = {};  // null: one process
  // Shown in the report: "command" → "vitrail train photos -o run", "version" → …
  std::vector<std::pair<std::string, std::string>> environment = {};
};

// Time for the all-reduce of gradients in a run, including previous resumptions.
struct CommunicationTimes {
  double seconds = 0;     // in all-reduces
  double overlapped = 0;  // the part of `seconds` during backward passes
  double waited = 0;      // waiting for all-reduces after backward passes
};

// A second training of the run's model, on all images: Recipe::data.retrain.  Without epochs the model is the start.
struct Retraining {
  int64_t epochs = 0, images = 0;
};

struct TrainingResult {
  bool stopped = false;            // callbacks.stop ended the run early
  int64_t epoch = 0, step = 0;     // epochs and optimiser steps so far
  std::vector<Metric> metrics{};   // those of the objective
  std::optional<Score> best{};     // first score of the kept weights on the validation images; empty without any
  std::vector<Score> baselines{};  // what simpler methods reach on the same images: Objective::begin()
  std::optional<Score> start{};    // that of the weights before the first step, if the objective measures them
  std::vector<Score> start_scores{}, best_scores{};  // with start: all scores of these weights and of the kept ones
  std::optional<Score> last{};                       // that of the weights of the last epoch, if validated
  int64_t validation_images = 0;
  std::optional<Score> cross_validated{};  // a probe's on the images that each fold left out
  int64_t best_epoch = 0;  // epoch of the kept weights: the last one if nothing was validated; 0 for a probe
  std::optional<Retraining> retrained{};  // the saved model's, if there was one; no score above is of it
  std::optional<Evaluation> test{};       // if there are test images and the run is finished
  int64_t skipped_images = 0;             // unreadable
  int64_t skipped_steps = 0;              // non-finite
  double seconds = 0;                     // training time, including previous resumptions
  int processes = 1;
  CommunicationTimes communication = {};
  std::string usage{};  // a command for the model, {} for its folder: "classify -m {} IMAGE"
};

// Trains a model as recipe.objective says.  With a communicator of K processes, each contributes `batch_size` images to
// every batch, which computes the same as one process with K times the batch size.  Rank 0 writes to the folder:
//   recipe.json                                    the recipe with every field
//   metrics.csv, tensorboard/events.out.tfevents…  losses, scores and timings
//   checkpoints/{last,previous,best,ema}.safetensors
//   model/                                         the best weights, in the layout of the Hugging Face hub: those of
//                                                  the lowest validation loss; without validation images the last
//                                                  ones; with data.retrain those of a second training on all images
//   last/                                          the weights of the last epoch, likewise
//   explain/epoch-0000/, …                         with recipe.explain: the start and later weights, likewise
//   report.html, summary.json
// Throws Error for invalid input (if possible before anything is written), for a folder that has any file of a run if
// `resume` is false, for one that has results but no checkpoint if it is true, for a new run in a folder of its images,
// for a failed write, and for a non-finite loss or gradient if recipe.non_finite is "stop".
TrainingResult train(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks = {});

}  // namespace vitrail::train
