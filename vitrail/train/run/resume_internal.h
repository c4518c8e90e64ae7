// SPDX-License-Identifier: Apache-2.0
#pragma once
// Resuming a run from the checkpoint in its folder.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/optim/ema.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/counters_internal.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {

// Loads the state of the run in `folder`, or nullopt if the folder has none.  Warns if `current` differs from the
// checkpoint's fingerprint.  Throws Error as require_startable() does (run_files_internal.h), and if the recipe differs
// but options.allow_changes is false.
std::optional<CheckpointState> load_resumable_state(const RunFolder& folder, const Recipe& recipe,
                                                    const TrainerOptions& options, const Fingerprint& current);

// Copies the weights, the state of the optimiser and the average (if `update` has one) of a checkpoint, and releases
// its tensors.  Throws Error, beginning with `where`, for values that are not finite, negative second moments,
// and other names or shapes.
void restore_tensors(CheckpointState& state, const std::vector<nn::NamedTensor>& parameters,
                     optim::Optimizer& optimizer, optim::Ema* ema, const std::string& where);

// Throws Error, beginning with `where`, for counters of epochs that the position has not reached.
void check_progress(const Position& position, const Counters& counters, const std::string& where);

// Copies the weights of a file that write_weights() has written.
void load_weights(const std::filesystem::path& path, const std::vector<nn::NamedTensor>& parameters);

// Converts the position of a checkpoint to one for batches of `batch_images` images over all processes.  If the batch
// size changes, the run continues at the same image of the epoch, rounded down to the start of a step of `accumulate`
// batches: no image is skipped, and less than a step's images are seen twice.  `batches`: batches per epoch.
Position resume_position(Position position, int64_t batch_images, int64_t batches, int64_t accumulate);

// The learning rate at a step of the schedule of a checkpoint's recipe; nothing if it cannot be parsed.
std::optional<double> scheduled_rate(const std::string& recipe, int64_t steps_per_epoch, int64_t step);

// Throws Error if the class indices of a run would change their meaning: a folder was added, removed or renamed.
void check_class_names(const std::vector<std::string>& before, const std::vector<std::string>& now,
                       const std::string& where);

// Throws Error, beginning with `where`, if a tensor has a NaN or an infinity.
void check_finite(const std::vector<nn::NamedTensor>& tensors, const std::string& where);

// Copies tensors by name.  Throws Error, beginning with `where`, if names or shapes differ.
void copy_weights(const std::vector<nn::NamedTensor>& from, const std::vector<nn::NamedTensor>& to,
                  const std::string& where);

}  // namespace vitrail::train
