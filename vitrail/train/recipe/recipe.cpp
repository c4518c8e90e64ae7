// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/recipe/recipe.h"

#include <algorithm>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/base/fields_json_internal.h"
#include "vitrail/base/installed_files.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/model_args_internal.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/recipe/recipe_overrides_internal.h"

namespace vitrail::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMax = std::numeric_limits<double>::max();
constexpr size_t kMaxRecipeBytes = 4 << 20;  // limits what is read of another file, such as /dev/zero
constexpr int64_t kMaxCacheMb = 1 << 30, kMaxPadding = 10'000;
constexpr int64_t kMaxSteps = int64_t{1} << 53;  // more than any run has
constexpr Range kAny{}, kNonNegative{0, kMax}, kFraction{0, 1}, kEpochs{0, kMaxEpochs};

void describe_mimetic(Fields& fields, nn::MimeticOptions& mimetic) {
  fields.number("qk_noise", mimetic.qk_noise, kNonNegative);
  fields.number("qk_identity", mimetic.qk_identity, kNonNegative);
  fields.number("vo_noise", mimetic.vo_noise, kNonNegative);
  fields.number("vo_identity", mimetic.vo_identity, kNonNegative);
}

void describe_model(Fields& fields, ModelRecipe& model) {
  fields.text("architecture", model.architecture);
  fields.text("init", model.init);
  fields.text("config", model.config);
  fields.text("key_map", model.key_map);
  fields.text("adapter", model.adapter);
  fields.choice("positions", model.positions, {"drawn", "sincos2d"});
  fields.object("mimetic", model.mimetic, describe_mimetic);
  fields.choice("head", model.head, {"drawn", "probe"});
  fields.texts("freeze", model.freeze);
  fields.boolean("linear_probe", model.linear_probe);
  fields.boolean("activation_checkpointing", model.activation_checkpointing);
}

void describe_data(Fields& fields, DataRecipe& data) {
  fields.text("train", data.train);
  fields.text("val", data.val);
  fields.text("test", data.test);
  fields.text("train_split", data.train_split);
  fields.text("val_split", data.val_split);
  fields.text("test_split", data.test_split);
  fields.text("columns", data.columns);
  fields.integer("holdout", data.holdout, 0);
  fields.integer("folds", data.folds, 0, 1000);
  fields.integer("fold", data.fold, 0, 1000);
  fields.integer("holdout_seed", data.holdout_seed, 0);
  fields.boolean("retrain", data.retrain);
  fields.choice("preset", data.preset, {"", "imagenet", "inception", "cifar10", "mnist"});
  fields.numbers("mean", data.mean, kAny);
  fields.numbers("std", data.std, {1e-9, kMax});
  fields.choice("interpolation", data.interpolation,
                {"", "nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"});
  fields.number("crop_pct", data.crop_pct, {0.01, 1});
  fields.choice<data::Unreadable>("unreadable", data.unreadable,
                                  {{"error", data::Unreadable::error},
                                   {"skip", data::Unreadable::replace},
                                   {"leave_out", data::Unreadable::leave_out}});
  fields.boolean("balance", data.balance);
  fields.boolean("exif", data.exif);
  fields.integer(Field("keep_decoded_mb").without_effect(), data.keep_decoded_mb, 0, kMaxCacheMb);
  fields.integer(Field("workers").without_effect(), data.workers, 0, 1024);
  fields.integer(Field("in_flight").without_effect(), data.in_flight, 1, 1024);
}

void describe_optimizer(Fields& fields, Recipe& recipe) {
  fields.choice("name", recipe.optimizer.kind, {"adamw", "sgd", "lamb", "lion"});
  fields.number("lr", recipe.lr, kNonNegative);
  fields.number("weight_decay", recipe.groups.weight_decay, kNonNegative);
  fields.number("beta1", recipe.optimizer.beta1, kFraction);
  fields.number("beta2", recipe.optimizer.beta2, kFraction);
  fields.number("eps", recipe.optimizer.eps, kNonNegative);
  fields.number("momentum", recipe.optimizer.momentum, kFraction);
  fields.boolean("nesterov", recipe.optimizer.nesterov);
  fields.number("layer_decay", recipe.groups.layer_decay, kFraction);
  fields.texts("no_decay", recipe.groups.no_decay);
}

void describe_schedule(Fields& fields, ScheduleRecipe& schedule) {
  fields.choice("name", schedule.name, {"cosine", "linear", "step", "constant"});
  fields.number("final_lr", schedule.final_lr, kNonNegative);
  fields.number("warmup_epochs", schedule.warmup_epochs, kEpochs);
  fields.number("warmup_lr", schedule.warmup_lr, kNonNegative);
  fields.boolean("warmup_prefix", schedule.warmup_prefix);
  fields.number("decay_epochs", schedule.decay_epochs, kEpochs);
  fields.number("decay_factor", schedule.decay_factor, kFraction);
  fields.number("final_weight_decay", schedule.final_weight_decay, kNonNegative);
}

void describe_filter(Fields& fields, const char* name, image::Filter& filter) {
  using image::Filter;
  fields.choice<Filter>(name, filter,
                        {{"nearest", Filter::nearest},
                         {"lanczos", Filter::lanczos},
                         {"bilinear", Filter::bilinear},
                         {"bicubic", Filter::bicubic},
                         {"box", Filter::box},
                         {"hamming", Filter::hamming}});
}

void describe_random_resized_crop(Fields& fields, data::RandomResizedCrop& crop) {
  fields.pair("scale", crop.scale, kFraction);
  fields.pair("ratio", crop.ratio, {0.01, 100});
  bool both = crop.interpolation.size() > 1;  // timm's "random": bilinear or bicubic, drawn per image
  fields.boolean("random_interpolation", both);
  if (both) {
    crop.interpolation = {image::Filter::bilinear, image::Filter::bicubic};
  } else {
    describe_filter(fields, "interpolation", crop.interpolation.front());
  }
}

void describe_padded_crop(Fields& fields, data::PaddedCrop& crop) {
  using Mode = data::PaddedCrop::Mode;
  fields.integer("padding", crop.padding, 0, kMaxPadding);
  fields.choice<Mode>("mode", crop.mode, {{"constant", Mode::constant}, {"reflect", Mode::reflect}});
}

void describe_affine(Fields& fields, data::RandomAffine& affine) {
  fields.number("degrees", affine.degrees, {0, 180});
  fields.pair("shift", affine.shift, kFraction);
  fields.pair("scale", affine.scale, {0.01, 100});
  describe_filter(fields, "interpolation", affine.interpolation);
}

void describe_jitter(Fields& fields, data::ColorJitter& jitter) {
  fields.number("brightness", jitter.brightness, kNonNegative);
  fields.number("contrast", jitter.contrast, kNonNegative);
  fields.number("saturation", jitter.saturation, kNonNegative);
  fields.number("hue", jitter.hue, {0, 0.5});
  fields.number("probability", jitter.probability, kFraction);
}

void describe_blur(Fields& fields, data::RandomBlur& blur) {
  fields.number("probability", blur.probability, kFraction);
  fields.pair("radius", blur.radius, {0, 100});
}

void describe_solarize(Fields& fields, data::RandomSolarize& solarize) {
  fields.number("probability", solarize.probability, kFraction);
  fields.integer("threshold", solarize.threshold, 0, 256);
}

void describe_erasing(Fields& fields, data::RandomErasing& erasing) {
  using Mode = data::RandomErasing::Mode;
  fields.number("probability", erasing.probability, kFraction);
  fields.choice<Mode>("mode", erasing.mode,
                      {{"constant", Mode::constant}, {"colour", Mode::colour}, {"pixel", Mode::pixel}});
  fields.pair("area", erasing.area, kFraction);
  fields.pair("ratio", erasing.ratio, {0.01, 100});
  fields.pair("count", erasing.count, 1);
}

void describe_augment(Fields& fields, Recipe& recipe) {
  data::AugmentOptions& augment = recipe.augment;
  fields.object("random_resized_crop", augment.random_resized_crop, describe_random_resized_crop);
  fields.object("padded_crop", augment.padded_crop, describe_padded_crop);
  fields.choice<data::Flip>(
      "flip", augment.flip,
      {{"none", data::Flip::none}, {"random", data::Flip::random}, {"alternate", data::Flip::alternate}});
  fields.object("affine", augment.affine, describe_affine);
  fields.text("policy", augment.policy);
  fields.number("policy_share", augment.policy_share, kFraction);
  fields.object("color_jitter", augment.color_jitter, describe_jitter);
  fields.number("grayscale", augment.grayscale, kFraction);
  fields.object("blur", augment.blur, describe_blur);
  fields.object("solarize", augment.solarize, describe_solarize);
  fields.object("erasing", [&](Fields& inner) { describe_erasing(inner, augment.erasing); });
  std::vector<double> fill(augment.fill.begin(), augment.fill.end());
  fields.numbers("fill", fill, {0, 255});
  augment.fill.assign(fill.begin(), fill.end());
  fields.integer("repeats", recipe.repeats, 1, 64);
  fields.number("plain_epochs", recipe.plain_epochs, kEpochs);

  using Mode = data::MixupOptions::Mode;
  fields.number("mixup", recipe.mix.mixup_alpha, kNonNegative);
  fields.number("cutmix", recipe.mix.cutmix_alpha, kNonNegative);
  fields.number("mix_probability", recipe.mix.probability, kFraction);
  fields.number("switch_probability", recipe.mix.switch_probability, kFraction);
  fields.choice<Mode>("mix_mode", recipe.mix.mode, {{"batch", Mode::batch}, {"element", Mode::element}});
  fields.number("unmixed_epochs", recipe.unmixed_epochs, kEpochs);
}

void describe_distillation(Fields& fields, DistillationRecipe& distillation) {
  fields.text("teacher", distillation.teacher);
  fields.choice("kind", distillation.kind, {"soft", "hard"});
  fields.number("alpha", distillation.alpha, kFraction);
  fields.number("temperature", distillation.temperature, {1e-3, kMax});
  fields.integer("views", distillation.views, 0, 1'000'000);
  fields.integer("view_epochs", distillation.view_epochs, 0);
  fields.text(Field("cache").without_effect(), distillation.cache);
}

void describe_token_drop(Fields& fields, TokenDropRecipe& drop) {
  fields.number("rate", drop.rate, {0, 0.99});
  fields.number("until", drop.until, kFraction);
}

void describe_lora(Fields& fields, nn::LoraOptions& lora) {
  constexpr int64_t kMaxRank = 4096;
  fields.integer("rank", lora.rank, 1, kMaxRank);
  fields.number("alpha", lora.alpha, {1e-9, kMax});
  fields.choice("layers", lora.layers, {"qv", "all"});
  fields.number("dropout", lora.dropout, {0, 0.99});
}

void describe_loss(Fields& fields, LossRecipe& loss) {
  fields.choice("name", loss.name, {"cross_entropy", "bce"});
  fields.number("label_smoothing", loss.label_smoothing, kFraction);
  fields.number("bce_threshold", loss.bce_threshold, kFraction);
  fields.boolean("bce_sum", loss.bce_sum);
  fields.choice("class_weighting", loss.class_weighting, {"none", "inverse_frequency"});
  fields.numbers("class_weights", loss.class_weights, {1e-9, kMax});
  fields.object("distillation", loss.distillation, describe_distillation);
}

void describe_ema(Fields& fields, optim::EmaOptions& ema) {
  fields.number("decay", ema.decay, kFraction);
  fields.boolean("warmup", ema.warmup);
  fields.number("warmup_gamma", ema.warmup_gamma, {1e-9, kMax});
  fields.number("warmup_power", ema.warmup_power, kNonNegative);
  fields.number("min_decay", ema.min_decay, kFraction);
  fields.integer("after_step", ema.after_step, 0, kMaxSteps);
}

}  // namespace

void describe_recipe(Fields& fields, Recipe& recipe) {
  fields.choice("objective", recipe.objective, objective_names());
  if (const auto& describe = objective_of(recipe).describe) describe(fields, recipe);
  fields.object("data", [&](Fields& inner) { describe_data(inner, recipe.data); });
  fields.integer("epochs", recipe.epochs, 1, kMaxEpochs);
  fields.integer("batch_size", recipe.batch_size, 1, 1'000'000);
  fields.integer("accumulate", recipe.accumulate, 1, 1'000'000);
  fields.choice("precision", recipe.precision, {"fp32", "half", "bf16"});
  if (recipe.precision == "half") recipe.precision = "bf16";  // the 16-bit precision of training
  fields.integer("seed", recipe.seed, 0);
  fields.object("optimizer", [&](Fields& inner) { describe_optimizer(inner, recipe); });
  fields.number("clip", recipe.clip, kNonNegative);
  fields.boolean("clip_per_tensor", recipe.clip_per_tensor);
  fields.object("schedule", [&](Fields& inner) { describe_schedule(inner, recipe.schedule); });
  fields.object("augment", [&](Fields& inner) { describe_augment(inner, recipe); });
  fields.object("token_drop", recipe.token_drop, describe_token_drop);
  fields.object("lora", recipe.lora, describe_lora);
  fields.object("loss", [&](Fields& inner) { describe_loss(inner, recipe.loss); });
  fields.object("ema", recipe.ema, describe_ema);
  fields.object("checkpoint", [&](Fields& inner) {
    inner.integer(Field("every_steps").without_effect(), recipe.checkpoint.every_steps, 0);
    inner.number(Field("every_minutes").without_effect(), recipe.checkpoint.every_minutes, kNonNegative);
  });
  fields.object("explain", [&](Fields& inner) {
    inner.integer(Field("every").without_effect(), recipe.explain.every, 0, kMaxEpochs);
  });
  fields.choice("non_finite", recipe.non_finite, {"stop", "skip"});
  fields.integer("validate_every", recipe.validate_every, 1);
  fields.integer("patience", recipe.patience, 0);
  fields.integer(Field("log_every").without_effect(), recipe.log_every, 1);
}

namespace {

// Reads "model".  Its fields and those of model_args are mixed in one object; they are separated here, because
// describe_model() checks the former and models::read_model_args() the latter.
void read_model(const Json& json, ModelRecipe& model, std::vector<std::string>& problems) {
  if (!json.is_object()) {
    problems.push_back("model: expected a registered name or an object, got " + json.dump());
    return;
  }
  static const std::vector<std::string> kRecipeFields{
      "architecture", "init",    "config", "key_map",      "adapter",    "positions",
      "head",         "mimetic", "freeze", "linear_probe", "model_args", "activation_checkpointing"};
  Json own = Json::object(), args = Json::object();
  for (const auto& item : json.items()) {
    const bool is_own = std::find(kRecipeFields.begin(), kRecipeFields.end(), item.key()) != kRecipeFields.end();
    (is_own ? own : args)[item.key()] = item.value();
  }
  if (own.contains("model_args")) {
    const Json nested = own["model_args"];
    own.erase("model_args");
    if (nested.is_object()) {
      args.update(nested);
    } else {
      problems.push_back("model.model_args: expected an object, got " + nested.dump());
    }
  }
  std::vector<Error> wrong;
  JsonFieldReader reader(own, "model.", wrong);
  describe_model(reader, model);
  reader.finish();
  for (const Error& error : wrong) problems.push_back(error.what());
  if (model.architecture == "vit") model.architecture.clear();
  const auto note_problem = [&](const auto& check) {
    try {
      check();
    } catch (const Error& error) {
      problems.push_back(error.what());
    }
  };
  note_problem([&] {
    if (!model.architecture.empty()) models::registered_config(model.architecture, "model.architecture");
  });
  note_problem([&] {
    models::VisionTransformerConfig ignored;
    models::read_model_args(models::JsonFields(args, "model"), ignored, kRecipeFields);
  });
  model.model_args = args.dump();
}

// Expands the short forms: a string instead of an object with only "name", and a number instead of {"decay": …}.
void expand_short_forms(Json& json) {
  if (!json.is_object()) return;
  for (const char* key : {"optimizer", "schedule", "loss"}) {
    if (json.contains(key) && json[key].is_string()) json[key] = Json{{"name", json[key]}};
  }
  if (json.contains("model") && json["model"].is_string()) json["model"] = Json{{"architecture", json["model"]}};
  if (json.contains("ema") && json["ema"].is_number()) json["ema"] = Json{{"decay", json["ema"]}};
}

void check_lora(const Recipe& recipe, std::vector<std::string>& problems) {
  if (!recipe.lora) return;
  if (objective_of(recipe).new_layers.empty())
    problems.push_back(str("lora: expected null for the objective \"", recipe.objective, "\", got an object"));
  if (recipe.model.init.empty())
    problems.emplace_back("lora: expected a model to start from in model.init or after -m, got none");
  if (recipe.model.linear_probe)
    problems.emplace_back(
        "lora: expected null together with model.linear_probe, which trains the head alone, got an "
        "object");
}

// Checks conditions on several fields.
void check_consistency(const Recipe& recipe, std::vector<std::string>& problems) {
  auto require = [&](bool condition, const std::string& problem) {
    if (!condition) problems.push_back(problem);
  };
  const DataRecipe& data = recipe.data;
  require(recipe.epochs > 0, "epochs: expected an integer of at least 1, got nothing");
  require(!data.train.empty(), "data.train: expected the path of a dataset, here or after --data, got nothing");
  require(recipe.model.init.empty() || (recipe.model.positions == "drawn" && !recipe.model.mimetic),
          "model.init: expected none together with positions or mimetic, which need a model from scratch, got a model");
  require(recipe.data.unreadable != data::Unreadable::leave_out || !recipe.mix.any(),
          "data.unreadable: expected \"error\" or \"skip\" together with mixup or cutmix, got \"leave_out\"");
  require(data.train_split.empty() || data.train_split != data.val_split || data.train != data.val,
          "data.val_split: expected another split than data.train_split, got the same");
  require(data.folds == 0 ? data.fold == 0 : data.fold >= 1 && data.fold <= data.folds,
          str("data.fold: expected 1 to data.folds, or 0 without folds, got ", data.fold));
  require(data.folds == 0 || (!data.holdout && data.val.empty()),
          "data.folds: expected neither data.holdout nor data.val, got one");
  require(recipe.model.adapter.empty() || !recipe.model.init.empty(),
          "model.adapter: expected a model to adapt in model.init or after -m, got none");
  require(!recipe.schedule.final_weight_decay || recipe.groups.weight_decay > 0,
          "optimizer.weight_decay: expected more than 0 together with schedule.final_weight_decay, got 0");
  require(!recipe.clip_per_tensor || recipe.clip > 0,
          "clip: expected more than 0 together with clip_per_tensor, got 0");
  check_lora(recipe, problems);
  if (const auto& check = objective_of(recipe).check) check(recipe, problems);
}

}  // namespace

Recipe parse_recipe(const std::string& text, const std::string& where, const std::vector<std::string>& overrides) {
  Json json = models::parse_json(text, where);
  expand_short_forms(json);
  for (const std::string& setting : overrides) apply_override(json, setting);
  expand_short_forms(json);  // again, because an override may be a short form
  Recipe recipe;
  std::vector<std::string> problems;
  if (!json.is_object()) throw Error(where, "a JSON object", json.type_name());
  if (json.contains("model")) {
    read_model(json["model"], recipe.model, problems);
  } else {
    problems.push_back("model: expected a registered name or an object, got nothing");
  }
  std::vector<Error> wrong;
  JsonFieldReader reader(json, "", wrong);
  reader.accept("model");
  describe_recipe(reader, recipe);
  reader.finish();
  for (const Error& error : wrong) problems.push_back(error.what());
  if (objective_of(recipe).solves && recipe.epochs == 0) recipe.epochs = 1;  // it reads the images once
  if (problems.empty()) check_consistency(recipe, problems);
  if (problems.empty()) return recipe;
  std::string message = where + ": invalid recipe:";
  for (const std::string& problem : problems) message += "\n  " + problem;
  throw Error(message);
}

Recipe read_recipe(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  return parse_recipe(read_text_file(find_installed(file).value_or(file), kMaxRecipeBytes), file.string(), overrides);
}

Recipe with_overrides(const Recipe& recipe, const std::string& where, const std::vector<std::string>& overrides) {
  Recipe result = parse_recipe(write_recipe(recipe), where, overrides);
  result.data.manifests = recipe.data.manifests;
  result.model.opened = recipe.model.opened;
  return result;
}

std::string write_recipe(const Recipe& recipe) {
  Json model_json = json_of_fields(describe_model, recipe.model);
  model_json["model_args"] = Json::parse(recipe.model.model_args.empty() ? "{}" : recipe.model.model_args);
  Json json{{"objective", recipe.objective}, {"model", model_json}};
  json.update(json_of_fields(describe_recipe, recipe));
  return json.dump(2) + "\n";
}

}  // namespace vitrail::train
