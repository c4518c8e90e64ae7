// SPDX-License-Identifier: Apache-2.0
#pragma once
// A recipe: everything that decides what a training run computes, as JSON (docs/training.md lists every field).
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/data/augment.h"
#include "vitrail/data/loader.h"
#include "vitrail/models/model_config.h"
#include "vitrail/nn/mimetic.h"
#include "vitrail/optim/ema.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/optim/parameter_groups.h"
#include "vitrail/optim/schedule.h"

namespace vitrail::train {

// "model": what is trained.  As JSON a registered name, or an object with model_args' fields beside these.
struct ModelRecipe {
  std::string architecture;  // a registered name whose fields model_args change; empty: VisionTransformerConfig's
  std::string init;          // a model to start from (a folder or a weights file); empty: from scratch
  std::string config;        // of `init`, where its weights lie alone
  std::string key_map;       // of `init`, where its keys are not recognised
  std::string model_args;    // a JSON object with the fields that are set; num_classes follows from the data
  // From scratch only, over what weight_init draws:
  std::string positions = "drawn";            // or "sincos2d": pos_embed begins as nn::sincos_positions_2d
  std::optional<nn::MimeticOptions> mimetic;  // attention weights as nn::mimetic_attention makes them
  std::vector<std::string> freeze;            // patterns of parameters that stay as they are (optim::matches)
  bool linear_probe = false;                  // everything but the head stays as it is
  bool activation_checkpointing = false;
};

// "data": paths are as `eval` takes them; $VITRAIL_ASSETS at their beginning is replaced (see expand_path).
struct DataRecipe {
  std::string train;                               // with a split of that name, which is then read
  std::string val;                                 // see open_data
  std::string test;                                // read once, at the end
  std::string train_split, val_split, test_split;  // where the default is not meant
  std::optional<int64_t> holdout;                  // images of the training split that choose the best weights
  uint64_t holdout_seed = 0;                       // apart from `seed`, so that runs of several seeds hold out the same
  std::string preset;                              // mean, std and what else is not set (models::apply_preset)
  std::vector<double> mean, std;
  std::string interpolation;
  std::optional<double> crop_pct;
  data::Unreadable unreadable = data::Unreadable::error;
  int64_t keep_decoded_mb = 1024;  // small datasets stay decoded in memory
  int64_t workers = 0;             // threads that decode and augment; 0: as many as compute
  int64_t in_flight = 3;           // batches made ahead
};

// "schedule": in epochs, which may be fractions.
struct ScheduleRecipe {
  std::string name = "cosine";
  double final_lr = 0;
  double warmup_epochs = 0;
  double warmup_lr = 0;
  bool warmup_prefix = true;
  double decay_epochs = 30;
  double decay_factor = 0.1;
};

// "token_drop": patches left out of the first part of a training (Liu et al. 2022, "PatchDropout"); afterwards as many
// as the model's own patch_drop_rate says.
struct TokenDropRecipe {
  double rate = 0.5;   // of the patches of each image
  double until = 0.6;  // share of all epochs
};

// "loss.distillation".  A model with a distillation token learns from the labels with one head and from the teacher
// with the other; any other with the same head.
struct DistillationRecipe {
  std::string teacher;        // a model
  std::string kind = "soft";  // or hard
  double alpha = 0.5;         // (1 − alpha) · loss + alpha · distillation
  double temperature = 3;
  int64_t views = 0;  // augmentations of an image; the teacher is asked once for each.  0: a new one every epoch
  // So many epochs show views; those after them show a new picture every time, taught by the mean of the answers.
  std::optional<int64_t> view_epochs;
  std::string cache;  // a folder for its answers that several runs share; empty: the run's own
};

struct LossRecipe {
  std::string name = "cross_entropy";  // or bce
  double label_smoothing = 0;
  std::optional<double> bce_threshold;
  bool bce_sum = false;
  std::optional<DistillationRecipe> distillation;
};

// "checkpoint": when the state is saved besides each validation and the end.
struct CheckpointRecipe {
  int64_t every_steps = 0;    // 0: not by steps
  double every_minutes = 10;  // 0: not by time
};

struct Recipe {
  std::string objective = "classify";  // the only one so far; self-supervised ones will stand beside it
  ModelRecipe model;
  DataRecipe data;
  int64_t epochs = 0;
  int64_t batch_size = 128;        // of an optimiser step's part on one process
  int64_t accumulate = 1;          // batches per optimiser step
  std::string precision = "fp32";  // or bf16: products in bf16, weights and sums in fp32
  uint64_t seed = 0;
  double lr = 1e-3;
  double clip = 0;  // largest norm of the gradients; 0: not clipped
  optim::OptimizerOptions optimizer;
  optim::GroupOptions groups;
  ScheduleRecipe schedule;
  data::AugmentOptions augment;
  data::MixupOptions mix;
  std::optional<TokenDropRecipe> token_drop;
  int64_t repeats = 1;
  double plain_epochs = 0;  // the last ones, in which affine, policy, jitter and erasing are off
  double unmixed_epochs = 0;
  LossRecipe loss;
  std::optional<optim::EmaOptions> ema;
  CheckpointRecipe checkpoint;
  std::string non_finite = "stop";  // or skip
  int64_t validate_every = 1;       // epochs
  int64_t log_every = 50;           // steps between rows of metrics.csv
};

// Reads a recipe.  Every field is checked; all that is wrong stands in one Error, a line each: the path of the field,
// what was expected and what came.  `overrides`: "key.path=value" over the file, the value as JSON, or a string where
// it is none.  `where` names the file.
Recipe parse_recipe(const std::string& json, const std::string& where, const std::vector<std::string>& overrides = {});
Recipe read_recipe(const std::filesystem::path& file, const std::vector<std::string>& overrides = {});

// The recipe with every field, indented; parse_recipe reads it back to the same recipe.
std::string write_recipe(const Recipe& recipe);

// What differs between two written recipes, a line each: "optimizer.lr: 0.001 → 0.002".  Schema that change nothing in
// what is computed (checkpoint, log_every, data.workers, data.in_flight, data.keep_decoded_mb, loss.distillation.cache)
// are left out.
std::vector<std::string> recipe_differences(const std::string& before, const std::string& after);

// The path with $VITRAIL_ASSETS at its beginning replaced by the variable's value, or by ../shared/assets where it is
// not set.
std::string expand_path(const std::string& path);

}  // namespace vitrail::train
