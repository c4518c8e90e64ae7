// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recipes: all settings that determine the result of a training run, as a struct and as JSON.  The members have the
// names of the JSON fields, which docs/training.md lists.
#include <any>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/data/augment/augment.h"
#include "vitrail/data/datasets/manifest.h"
#include "vitrail/data/loader/loader.h"
#include "vitrail/models/load.h"
#include "vitrail/nn/lora.h"
#include "vitrail/nn/mimetic.h"
#include "vitrail/optim/ema.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/optim/parameter_groups.h"
#include "vitrail/optim/schedule.h"

namespace vitrail::train {

// The checkpoints that models start from, by ModelRecipe::init, config, key_map and adapter.
using OpenedModels = std::map<std::array<std::string, 4>, std::shared_ptr<const models::OpenedModel>>;

// "model": the model to train.  In JSON, a registered name, or an object that mixes these fields with those of
// model_args.
struct ModelRecipe {
  std::string architecture{};  // a registered name, modified by model_args; empty: defaults of VisionTransformerConfig
  std::string init{};          // checkpoint to start from (a folder or a weights file); empty: from scratch
  std::string config{};        // configuration of `init`, if it has none beside its weights
  std::string key_map{};       // key map of `init`, if its keys are not recognised
  std::string adapter{};       // LoRA adapter of `init` (weights/lora_adapter.h)
  std::string model_args{};    // a JSON object of VisionTransformerConfig fields; num_classes follows from the data
  // These two replace a part of the random initialisation, so they exclude `init`:
  std::string positions = "drawn";              // random, or "sincos2d": pos_embed from nn::sincos_positions_2d
  std::optional<nn::MimeticOptions> mimetic{};  // attention weights from nn::mimetic_attention
  // New rows of the head: "drawn", or all rows "probe": a linear probe's (LP-FT, Kumar et al. 2022).
  std::string head = "drawn";
  std::vector<std::string> freeze{};      // name patterns of parameters that are not trained (optim::matches)
  bool linear_probe = false;              // train only the head
  bool activation_checkpointing = false;  // recompute activations in the backward pass
  // No setting: what was opened already, for whoever gets the recipe, until the model is prepared.
  std::shared_ptr<OpenedModels> opened = std::make_shared<OpenedModels>();
};

// "data": datasets.  Paths are as for `vitrail eval`, or those of distributed datasets (find_dataset).
struct DataRecipe {
  std::string train{};  // training images: the split "train", or all if there are no splits
  std::string val{};    // validation images, evaluated after each epoch
  std::string test{};   // test images, evaluated once at the end
  std::string train_split{}, val_split{}, test_split{};  // other splits than the defaults
  std::string columns{};                                 // columns of lists: data::parse_columns
  std::optional<int64_t> holdout{};                      // number of training images that are held out for validation
  int64_t folds = 0, fold = 0;  // hold out fold `fold`, from 1, of `folds` instead (data::fold_split); 0: off
  uint64_t holdout_seed = 0;    // independent of `seed`: runs of several seeds hold out the same
  bool retrain = false;         // whether held-out images choose the epochs of a second training, on all images
  std::string preset{};         // preprocessing defaults (models::apply_preset)
  std::vector<double> mean{}, std{};
  std::string interpolation{};
  std::optional<double> crop_pct{};
  data::Unreadable unreadable = data::Unreadable::error;
  bool balance = false;            // whether an epoch shows equally many images of each class
  bool exif = false;               // whether the EXIF orientation of images is applied
  int64_t keep_decoded_mb = 1024;  // size limit of the cache of decoded images, in MiB
  int64_t workers = 0;             // threads that decode and augment; 0: half of the compute threads, at least one
  int64_t in_flight = 3;           // batches that are prepared ahead
  data::Manifests manifests{};     // no setting: the sets that were read already, for whoever gets the recipe
};

// "schedule": durations in epochs, which may be fractions.  See optim::ScheduleOptions.
struct ScheduleRecipe {
  std::string name = "cosine";
  double final_lr = 0;
  double warmup_epochs = 0;
  double warmup_lr = 0;
  bool warmup_prefix = true;
  double decay_epochs = 30;
  double decay_factor = 0.1;
  std::optional<double> final_weight_decay{};  // unset: constant
};

// "token_drop": PatchDropout (Liu et al. 2022) in the first epochs; afterwards the model's own patch_drop_rate applies.
struct TokenDropRecipe {
  double rate = 0.5;   // fraction of the patches of each image that is dropped
  double until = 0.6;  // fraction of all epochs
};

// "loss.distillation": knowledge distillation (Hinton et al. 2015).  In a model with a distillation token, the class
// head learns from the labels and the distillation head from the teacher (Touvron et al. 2021, DeiT).
struct DistillationRecipe {
  std::string teacher{};      // path of a model
  std::string kind = "soft";  // "soft" or "hard"
  double alpha = 0.5;         // total loss: (1 − alpha) · loss + alpha · distillation loss
  double temperature = 3;
  // Number of fixed augmentations per image, whose teacher logits are cached; 0: new ones each epoch.
  int64_t views = 0;
  // Number of epochs that show these views; unset: all.  Later epochs show new augmentations, and the target is the
  // mean of the cached logits over the views.
  std::optional<int64_t> view_epochs = {};
  std::string cache = {};  // folder of the teacher's logits, which several runs may share; empty: in the run's folder

  bool operator==(const DistillationRecipe&) const = default;
};

struct LossRecipe {
  std::string name = "cross_entropy";  // "cross_entropy", or "bce": binary cross-entropy per class
  double label_smoothing = 0;
  std::optional<double> bce_threshold{};  // ops::BceOptions::threshold
  bool bce_sum = false;                   // ops::BceOptions::sum_classes
  // Weights of the classes in the cross-entropy.  "inverse_frequency": n / (classes · n_class) of the training images.
  std::string class_weighting = "none";
  std::vector<double> class_weights{};  // given weights in the order of the classes; empty: none
  std::optional<DistillationRecipe> distillation{};

  bool operator==(const LossRecipe&) const = default;
};

// "checkpoint": when to save besides the end of each epoch.
struct CheckpointRecipe {
  int64_t every_steps = 0;    // optimiser steps; 0: off
  double every_minutes = 10;  // 0: off
};

// "explain": the models that the run keeps for its learning page.
struct ExplainRecipe {
  int64_t every = 0;  // epochs; the last one is kept, too.  0: none
};

constexpr int64_t kMaxEpochs = 1'000'000;  // the most that Recipe::epochs may be

struct Recipe {
  // The name of an ObjectiveRow: "classify", "segment", "semantic", "detect", "pretrain" and "contrastive" by gradient
  // descent, "probe" by logistic regression.
  std::string objective = "classify";
  ModelRecipe model{};
  DataRecipe data{};
  int64_t epochs = 0;
  int64_t batch_size = 128;  // images of a forward pass in each process
  int64_t accumulate = 1;    // batches per optimiser step (gradient accumulation)
  // "fp32", or "bf16": mixed precision, GEMM in bf16 with fp32 weights and accumulators
  std::string precision = "fp32";
  uint64_t seed = 0;
  double lr = 1e-3;              // peak learning rate
  double clip = 0;               // maximum gradient norm; 0: no clipping
  bool clip_per_tensor = false;  // clip is the norm of each parameter's gradient by itself
  optim::OptimizerOptions optimizer{};
  optim::GroupOptions groups{};
  ScheduleRecipe schedule{};
  data::AugmentOptions augment{};
  data::MixupOptions mix{};
  std::optional<TokenDropRecipe> token_drop{};
  // The model's layers stay but for low-rank parts and new layers (ObjectiveRow::new_layers).
  std::optional<nn::LoraOptions> lora{};
  int64_t repeats = 1;        // repeated augmentation (data::LoaderOptions::repeats)
  double plain_epochs = 0;    // number of last epochs with crop and flip only (AugmentOptions::off_epoch)
  double unmixed_epochs = 0;  // number of last epochs without mixup and cutmix
  LossRecipe loss{};
  std::any section{};  // settings of the objective alone: ObjectiveRow::describe
  std::optional<optim::EmaOptions> ema{};
  CheckpointRecipe checkpoint{};
  ExplainRecipe explain{};
  std::string non_finite = "stop";  // on a non-finite loss or gradient: throw, or "skip" the step
  int64_t validate_every = 1;       // epochs
  int64_t patience = 0;             // epochs without a better validation loss that end the run; 0: off
  int64_t log_every = 50;           // steps between rows of metrics.csv; fewer if a run would have fewer than 20 rows
};

// Parses a recipe.  `overrides`: settings "key.path=value" that replace fields; the value is JSON, or a string if it
// does not parse as JSON.  `where` names the file in messages.  Throws one Error that lists all problems, a line each:
// the path of the field, the expected and the given value.
Recipe parse_recipe(const std::string& json, const std::string& where, const std::vector<std::string>& overrides = {});
// `file`: a path, or one that is distributed with vitrail: "recipes/digits.json".
Recipe read_recipe(const std::filesystem::path& file, const std::vector<std::string>& overrides = {});

// Returns the recipe with overrides, and with what was opened for it.  Throws Error as parse_recipe.
Recipe with_overrides(const Recipe& recipe, const std::string& where, const std::vector<std::string>& overrides);

// Returns the recipe as indented JSON with every field.  parse_recipe reads it back to the same recipe.
std::string write_recipe(const Recipe& recipe);

// Returns the differences between two written recipes, a line each: "optimizer.lr: 0.001 → 0.002".  Ignores fields
// without effect on results: checkpoint, log_every, data.workers, data.in_flight, data.keep_decoded_mb,
// loss.distillation.cache, segment.cache.  Throws Error if one of them is no JSON, as that of a damaged checkpoint.
std::vector<std::string> recipe_differences(const std::string& before, const std::string& after);

}  // namespace vitrail::train
