// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/recipe.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "vitrail/base/error.h"
#include "vitrail/models/model_args_internal.h"
#include "vitrail/models/registry.h"
#include "vitrail/train/recipe_json_internal.h"
#include "vitrail/train/schema_internal.h"

namespace vitrail::train {
namespace {

constexpr double kMost = std::numeric_limits<double>::max();
constexpr Range kAny{-kMost, kMost}, kNotNegative{0, kMost}, kShare{0, 1};

void describe_mimetic(Schema& f, nn::MimeticOptions& mimetic) {
  f.number("qk_noise", mimetic.qk_noise, kNotNegative);
  f.number("qk_identity", mimetic.qk_identity, kNotNegative);
  f.number("vo_noise", mimetic.vo_noise, kNotNegative);
  f.number("vo_identity", mimetic.vo_identity, kNotNegative);
}

void describe_model(Schema& f, ModelRecipe& model) {
  f.text("architecture", model.architecture);
  f.text("init", model.init);
  f.text("config", model.config);
  f.text("key_map", model.key_map);
  f.choice("positions", model.positions, std::vector<std::string>{"drawn", "sincos2d"});
  f.optional("mimetic", model.mimetic, describe_mimetic);
  f.texts("freeze", model.freeze);
  f.boolean("linear_probe", model.linear_probe);
  f.boolean("activation_checkpointing", model.activation_checkpointing);
}

void describe_data(Schema& f, DataRecipe& data) {
  f.text("train", data.train);
  f.text("val", data.val);
  f.text("test", data.test);
  f.text("train_split", data.train_split);
  f.text("val_split", data.val_split);
  f.text("test_split", data.test_split);
  f.integer("holdout", data.holdout, 0);
  auto seed = static_cast<int64_t>(data.holdout_seed);
  f.integer("holdout_seed", seed, 0);
  data.holdout_seed = static_cast<uint64_t>(seed);
  f.text("preset", data.preset);
  f.numbers("mean", data.mean, kAny);
  f.numbers("std", data.std, {1e-9, kMost});
  f.text("interpolation", data.interpolation);
  f.number("crop_pct", data.crop_pct, {0.01, 1});
  f.choice<data::Unreadable>("unreadable", data.unreadable,
                             {{"error", data::Unreadable::error},
                              {"skip", data::Unreadable::replace},
                              {"leave_out", data::Unreadable::leave_out}});
  f.integer("keep_decoded_mb", data.keep_decoded_mb, 0);
  f.integer("workers", data.workers, 0, 1024);
  f.integer("in_flight", data.in_flight, 1, 1024);
}

void describe_optimizer(Schema& f, Recipe& recipe) {
  f.choice("name", recipe.optimizer.kind, std::vector<std::string>{"adamw", "sgd", "lamb", "lion"});
  f.number("lr", recipe.lr, kNotNegative);
  f.number("weight_decay", recipe.groups.weight_decay, kNotNegative);
  f.number("beta1", recipe.optimizer.beta1, kShare);
  f.number("beta2", recipe.optimizer.beta2, kShare);
  f.number("eps", recipe.optimizer.eps, kNotNegative);
  f.number("momentum", recipe.optimizer.momentum, kShare);
  f.boolean("nesterov", recipe.optimizer.nesterov);
  f.number("layer_decay", recipe.groups.layer_decay, kShare);
  f.texts("no_decay", recipe.groups.no_decay);
}

void describe_schedule(Schema& f, ScheduleRecipe& schedule) {
  f.choice("name", schedule.name, std::vector<std::string>{"cosine", "linear", "step", "constant"});
  f.number("final_lr", schedule.final_lr, kNotNegative);
  f.number("warmup_epochs", schedule.warmup_epochs, kNotNegative);
  f.number("warmup_lr", schedule.warmup_lr, kNotNegative);
  f.boolean("warmup_prefix", schedule.warmup_prefix);
  f.number("decay_epochs", schedule.decay_epochs, kNotNegative);
  f.number("decay_factor", schedule.decay_factor, kShare);
}

void describe_filter(Schema& f, const char* name, image::Filter& filter) {
  using image::Filter;
  f.choice<Filter>(name, filter,
                   {{"nearest", Filter::nearest},
                    {"lanczos", Filter::lanczos},
                    {"bilinear", Filter::bilinear},
                    {"bicubic", Filter::bicubic},
                    {"box", Filter::box},
                    {"hamming", Filter::hamming}});
}

void describe_random_resized_crop(Schema& f, data::RandomResizedCrop& crop) {
  f.pair("scale", crop.scale, kShare);
  f.pair("ratio", crop.ratio, {0.01, 100});
  bool both = crop.interpolation.size() > 1;  // timm's "random": bilinear or bicubic
  f.boolean("random_interpolation", both);
  if (both) {
    crop.interpolation = {image::Filter::bilinear, image::Filter::bicubic};
  } else {
    describe_filter(f, "interpolation", crop.interpolation.front());
  }
}

void describe_padded_crop(Schema& f, data::PaddedCrop& crop) {
  using Mode = data::PaddedCrop::Mode;
  f.integer("padding", crop.padding, 0);
  f.choice<Mode>("mode", crop.mode, {{"constant", Mode::constant}, {"reflect", Mode::reflect}});
}

void describe_affine(Schema& f, data::RandomAffine& affine) {
  f.number("degrees", affine.degrees, {0, 180});
  f.pair("shift", affine.shift, kShare);
  f.pair("scale", affine.scale, {0.01, 100});
  describe_filter(f, "interpolation", affine.interpolation);
}

void describe_jitter(Schema& f, data::ColorJitter& jitter) {
  f.number("brightness", jitter.brightness, kNotNegative);
  f.number("contrast", jitter.contrast, kNotNegative);
  f.number("saturation", jitter.saturation, kNotNegative);
  f.number("hue", jitter.hue, {0, 0.5});
  f.number("probability", jitter.probability, kShare);
}

void describe_erasing(Schema& f, data::RandomErasing& erasing) {
  using Mode = data::RandomErasing::Mode;
  f.number("probability", erasing.probability, kShare);
  f.choice<Mode>("mode", erasing.mode,
                 {{"constant", Mode::constant}, {"colour", Mode::colour}, {"pixel", Mode::pixel}});
  f.pair("area", erasing.area, kShare);
  f.pair("ratio", erasing.ratio, {0.01, 100});
  f.pair("count", erasing.count, 1);
}

void describe_augment(Schema& f, Recipe& recipe) {
  data::AugmentOptions& augment = recipe.augment;
  f.optional("random_resized_crop", augment.random_resized_crop, describe_random_resized_crop);
  f.optional("padded_crop", augment.padded_crop, describe_padded_crop);
  f.choice<data::Flip>(
      "flip", augment.flip,
      {{"none", data::Flip::none}, {"random", data::Flip::random}, {"alternate", data::Flip::alternate}});
  f.optional("affine", augment.affine, describe_affine);
  f.text("policy", augment.policy);
  f.number("policy_share", augment.policy_share, kShare);
  f.optional("color_jitter", augment.color_jitter, describe_jitter);
  f.object("erasing", [&](Schema& inner) { describe_erasing(inner, augment.erasing); });
  std::vector<double> fill(augment.fill.begin(), augment.fill.end());
  f.numbers("fill", fill, {0, 255});
  augment.fill.assign(fill.begin(), fill.end());
  f.integer("repeats", recipe.repeats, 1, 64);
  f.number("plain_epochs", recipe.plain_epochs, kNotNegative);

  using Mode = data::MixupOptions::Mode;
  f.number("mixup", recipe.mix.mixup_alpha, kNotNegative);
  f.number("cutmix", recipe.mix.cutmix_alpha, kNotNegative);
  f.number("mix_probability", recipe.mix.probability, kShare);
  f.number("switch_probability", recipe.mix.switch_probability, kShare);
  f.choice<Mode>("mix_mode", recipe.mix.mode, {{"batch", Mode::batch}, {"element", Mode::element}});
  f.number("unmixed_epochs", recipe.unmixed_epochs, kNotNegative);
}

void describe_distillation(Schema& f, DistillationRecipe& distillation) {
  f.text("teacher", distillation.teacher);
  f.choice("kind", distillation.kind, std::vector<std::string>{"soft", "hard"});
  f.number("alpha", distillation.alpha, kShare);
  f.number("temperature", distillation.temperature, {1e-3, kMost});
  f.integer("views", distillation.views, 0, 1'000'000);
  f.integer("view_epochs", distillation.view_epochs, 0);
  f.text("cache", distillation.cache);
}

void describe_token_drop(Schema& f, TokenDropRecipe& drop) {
  f.number("rate", drop.rate, {0, 0.99});
  f.number("until", drop.until, kShare);
}

void describe_loss(Schema& f, LossRecipe& loss) {
  f.choice("name", loss.name, std::vector<std::string>{"cross_entropy", "bce"});
  f.number("label_smoothing", loss.label_smoothing, kShare);
  f.number("bce_threshold", loss.bce_threshold, kShare);
  f.boolean("bce_sum", loss.bce_sum);
  f.optional("distillation", loss.distillation, describe_distillation);
}

void describe_ema(Schema& f, optim::EmaOptions& ema) {
  f.number("decay", ema.decay, kShare);
  f.boolean("warmup", ema.warmup);
  f.number("warmup_gamma", ema.warmup_gamma, {1e-9, kMost});
  f.number("warmup_power", ema.warmup_power, kNotNegative);
  f.number("min_decay", ema.min_decay, kShare);
  f.integer("after_step", ema.after_step, 0);
}

void describe(Schema& f, Recipe& recipe) {
  f.choice("objective", recipe.objective, std::vector<std::string>{"classify"});
  f.object("data", [&](Schema& inner) { describe_data(inner, recipe.data); });
  f.integer("epochs", recipe.epochs, 1, 1'000'000);
  f.integer("batch_size", recipe.batch_size, 1, 1'000'000);
  f.integer("accumulate", recipe.accumulate, 1, 1'000'000);
  f.choice("precision", recipe.precision, std::vector<std::string>{"fp32", "bf16"});
  auto seed = static_cast<int64_t>(recipe.seed);
  f.integer("seed", seed, 0);
  recipe.seed = static_cast<uint64_t>(seed);
  f.object("optimizer", [&](Schema& inner) { describe_optimizer(inner, recipe); });
  f.number("clip", recipe.clip, kNotNegative);
  f.object("schedule", [&](Schema& inner) { describe_schedule(inner, recipe.schedule); });
  f.object("augment", [&](Schema& inner) { describe_augment(inner, recipe); });
  f.optional("token_drop", recipe.token_drop, describe_token_drop);
  f.object("loss", [&](Schema& inner) { describe_loss(inner, recipe.loss); });
  f.optional("ema", recipe.ema, describe_ema);
  f.object("checkpoint", [&](Schema& inner) {
    inner.integer("every_steps", recipe.checkpoint.every_steps, 0);
    inner.number("every_minutes", recipe.checkpoint.every_minutes, kNotNegative);
  });
  f.choice("non_finite", recipe.non_finite, std::vector<std::string>{"stop", "skip"});
  f.integer("validate_every", recipe.validate_every, 1);
  f.integer("log_every", recipe.log_every, 1);
}

// The fields of "model" that are not model_args, and those that are: moved apart, so that each is checked by whom it
// concerns.
void read_model(const Json& json, ModelRecipe& model, std::vector<std::string>& problems) {
  if (!json.is_object()) {
    problems.push_back("model: expected a registered name or an object, got " + json.dump());
    return;
  }
  static const std::vector<std::string> kOwn{
      "architecture", "init",   "config",       "key_map",    "positions",
      "mimetic",      "freeze", "linear_probe", "model_args", "activation_checkpointing"};
  Json own = Json::object(), args = Json::object();
  for (const auto& item : json.items()) {
    const bool ours = std::find(kOwn.begin(), kOwn.end(), item.key()) != kOwn.end();
    (ours ? own : args)[item.key()] = item.value();
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
  SchemaReader reader(own, "model", problems);
  describe_model(reader, model);
  reader.finish();
  if (model.architecture == "vit") model.architecture.clear();
  if (!model.architecture.empty() && !models::find_architecture(model.architecture)) {
    std::string names;
    for (const std::string& name : models::similar_architectures(model.architecture))
      names += (names.empty() ? "" : ", ") + name;
    problems.push_back(
        str("model.architecture: expected a registered name (like ", names, "), got \"", model.architecture, "\""));
  }
  try {
    models::VisionTransformerConfig ignored;
    models::read_model_args(models::JsonFields(args, "model"), ignored);
  } catch (const Error& error) {
    problems.push_back(error.what());
  }
  model.model_args = args.dump();
}

// Short forms: a name where an object with "name" could stand, a number for an average's decay.
void expand_short_forms(Json& json) {
  if (!json.is_object()) return;
  for (const char* key : {"optimizer", "schedule", "loss"}) {
    if (json.contains(key) && json[key].is_string()) json[key] = Json{{"name", json[key]}};
  }
  if (json.contains("model") && json["model"].is_string()) json["model"] = Json{{"architecture", json["model"]}};
  if (json.contains("ema") && json["ema"].is_number()) json["ema"] = Json{{"decay", json["ema"]}};
}

void check_together(const Recipe& recipe, std::vector<std::string>& problems) {
  auto demand = [&](bool good, const std::string& problem) {
    if (!good) problems.push_back(problem);
  };
  demand(recipe.epochs > 0, "epochs: expected an integer of at least 1, got nothing");
  demand(!recipe.data.train.empty(), "data.train: expected the path of a dataset, got nothing");
  demand(!recipe.augment.padded_crop || !recipe.augment.random_resized_crop,
         "augment: expected one of padded_crop and random_resized_crop, got both");
  demand(!recipe.loss.distillation || !recipe.loss.distillation->teacher.empty(),
         "loss.distillation.teacher: expected a model, got nothing");
  demand(!recipe.model.linear_probe || !recipe.model.init.empty(),
         "model.linear_probe: expected a model to start from in model.init, got none");
  demand(recipe.model.init.empty() || (recipe.model.positions == "drawn" && !recipe.model.mimetic),
         "model.init: expected nothing beside positions and mimetic, which begin from scratch, got a model");
  demand(
      !recipe.loss.distillation || recipe.loss.distillation->views == 0 ||
          (recipe.repeats == 1 && recipe.data.unreadable != data::Unreadable::replace),
      "loss.distillation.views: expected augment.repeats 1 and data.unreadable not \"skip\", got another picture for "
      "the same view");
  demand(!recipe.loss.distillation || !recipe.loss.distillation->view_epochs ||
             (recipe.loss.distillation->views > 0 && !recipe.mix.any()),
         "loss.distillation.view_epochs: expected views, and neither mixup nor cutmix, got otherwise");
  demand(recipe.data.unreadable != data::Unreadable::leave_out || !recipe.mix.any(),
         "data.unreadable: expected \"error\" or \"skip\" beside mixup and cutmix, got \"leave_out\"");
  demand(recipe.data.train_split.empty() || recipe.data.train_split != recipe.data.val_split ||
             recipe.data.train != recipe.data.val,
         "data.val_split: expected another split than data.train_split, got the same");
}

}  // namespace

Recipe parse_recipe(const std::string& text, const std::string& where, const std::vector<std::string>& overrides) {
  Json json = models::parse_json(text, where);
  expand_short_forms(json);
  for (const std::string& setting : overrides) apply_override(json, setting);
  expand_short_forms(json);  // an override may be one too
  Recipe recipe;
  std::vector<std::string> problems;
  Json rest = json;
  if (!json.is_object()) throw Error(where, "a JSON object", json.type_name());
  if (json.contains("model")) {
    read_model(json["model"], recipe.model, problems);
    rest.erase("model");
  } else {
    problems.push_back("model: expected a registered name or an object, got nothing");
  }
  SchemaReader reader(rest, "", problems);
  describe(reader, recipe);
  reader.finish();
  if (problems.empty()) check_together(recipe, problems);
  if (problems.empty()) return recipe;
  std::string message = where + ": the recipe is not right:";
  for (const std::string& problem : problems) message += "\n  " + problem;
  throw Error(message);
}

Recipe read_recipe(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file)) throw Error(file.string() + ": cannot be opened");
  std::ostringstream text;
  text << stream.rdbuf();
  return parse_recipe(text.str(), file.string(), overrides);
}

std::string write_recipe(const Recipe& given) {
  Recipe recipe = given;
  SchemaWriter model;
  describe_model(model, recipe.model);
  Json model_json = model.json();
  model_json["model_args"] = Json::parse(recipe.model.model_args.empty() ? "{}" : recipe.model.model_args);
  SchemaWriter rest;
  describe(rest, recipe);
  Json json{{"objective", recipe.objective}, {"model", model_json}};
  for (const auto& item : rest.json().items()) json[item.key()] = item.value();
  return json.dump(2) + "\n";
}

}  // namespace vitrail::train
