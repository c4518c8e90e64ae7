// SPDX-License-Identifier: Apache-2.0
#pragma once
// A training run: from a recipe to a folder with a model.
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "vitrail/dist/communicator.h"
#include "vitrail/train/recipe.h"

namespace vitrail::train {

// What a progress bar shows, after each step and during validation.
struct Progress {
  enum class Phase { train, validate, test };
  Phase phase = Phase::train;
  int64_t epoch = 0, epochs = 0;  // from 1
  int64_t step = 0, steps = 0;    // batches of the epoch (or of the dataset that is read)
  double loss = 0, accuracy = 0;  // of the epoch so far
  double images_per_second = 0;
  double data_wait = 0;     // share of the time that was spent waiting for data
  double seconds_left = 0;  // of the whole run, by the speed so far
};

struct EpochResult {
  int64_t epoch = 0, step = 0;  // done
  double train_loss = 0, train_top1 = 0;
  double val_loss = 0, val_top1 = 0, val_top5 = 0;  // of the weights
  double ema_loss = 0, ema_top1 = 0, ema_top5 = 0;  // of their average, where there is one
  bool validated = false, has_ema = false, best = false;
  double seconds = 0;  // of the run so far, over all resumptions
};

// Called in the process with rank 0 only, except `stop`: what one process is asked to do, all do.
struct TrainerCallbacks {
  std::function<void(const Progress&)> progress;
  std::function<void(const EpochResult&)> epoch;
  std::function<void(const std::string&)> message;  // what a reader of a log wants to know
  std::function<bool()> stop;                       // asked after each step; true: save and end
};

struct TrainerOptions {
  std::filesystem::path folder;                      // of the run
  bool resume = false;                               // go on from the folder's checkpoint
  bool allow_changes = false;                        // resume with another recipe, warning instead of failing
  int threads = 0;                                   // 0: all that the process may use
  std::shared_ptr<dist::Communicator> communicator;  // null: one process
};

// Gradients between processes: what it took, over all resumptions.
struct ExchangeTimes {
  double seconds = 0;     // in which some were on their way
  double overlapped = 0;  // of these, while the backward pass still ran
  double waited = 0;      // after it had ended
};

struct TrainingResult {
  bool stopped = false;  // before the end, because callbacks.stop asked for it
  int64_t epoch = 0, step = 0;
  double best_top1 = 0;  // on the held-out images
  int64_t best_epoch = 0;
  bool tested = false;
  double test_loss = 0, test_top1 = 0, test_top5 = 0;
  int64_t skipped_images = 0, skipped_steps = 0;
  double seconds = 0;
  int processes = 1;
  ExchangeTimes exchange;
};

// Trains as the recipe says; with a communicator of K processes, each with its own `batch_size` images of every batch,
// as one process does with K times as many.  Only rank 0 reads and writes the folder, which then holds
//   recipe.json                                    resolved: every field
//   metrics.csv, tensorboard/events.out.tfevents…  what was measured
//   checkpoints/{last,previous,best,ema}.safetensors
//   model/                                         the best weights, in hub layout
//   report.html, summary.json
// Throws Error for bad input (before anything is written where that can be told), a folder that holds a run already
// (without resume), a full disk, and a loss or gradient that is not finite where the recipe says stop.
TrainingResult train(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks = {});

}  // namespace vitrail::train
