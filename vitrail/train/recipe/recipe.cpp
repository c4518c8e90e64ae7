// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/recipe/recipe.h"

#include <algorithm>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/base/installed_files.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/model_args_internal.h"
#include "vitrail/train/recipe/recipe_overrides_internal.h"
#include "vitrail/train/recipe/schema_internal.h"
#include "vitrail/train/recipe/segment_recipe_internal.h"

namespace vitrail::train {
namespace {

constexpr double kMax = std::numeric_limits<double>::max();
constexpr size_t kMaxRecipeBytes = 4 << 20;  // limits what is read of another file, such as /dev/zero
constexpr int64_t kMaxCacheMb = 1 << 30, kMaxPadding = 10'000;
constexpr int64_t kMaxSteps = int64_t{1} << 53;  // more than any run has
constexpr Range kAny{-kMax, kMax}, kNonNegative{0, kMax}, kFraction{0, 1}, kEpochs{0, kMaxEpochs};

void describe_mimetic(Schema& schema, nn::MimeticOptions& mimetic) {
  schema.number("qk_noise", mimetic.qk_noise, kNonNegative);
  schema.number("qk_identity", mimetic.qk_identity, kNonNegative);
  schema.number("vo_noise", mimetic.vo_noise, kNonNegative);
  schema.number("vo_identity", mimetic.vo_identity, kNonNegative);
}

void describe_model(Schema& schema, ModelRecipe& model) {
  schema.string("architecture", model.architecture);
  schema.string("init", model.init);
  schema.string("config", model.config);
  schema.string("key_map", model.key_map);
  schema.choice("positions", model.positions, std::vector<std::string>{"drawn", "sincos2d"});
  schema.optional("mimetic", model.mimetic, describe_mimetic);
  schema.string_list("freeze", model.freeze);
  schema.boolean("linear_probe", model.linear_probe);
  schema.boolean("activation_checkpointing", model.activation_checkpointing);
}

void describe_data(Schema& schema, DataRecipe& data) {
  schema.string("train", data.train);
  schema.string("val", data.val);
  schema.string("test", data.test);
  schema.string("train_split", data.train_split);
  schema.string("val_split", data.val_split);
  schema.string("test_split", data.test_split);
  schema.integer("holdout", data.holdout, 0);
  schema.integer("folds", data.folds, 0, 1000);
  schema.integer("fold", data.fold, 0, 1000);
  auto seed = static_cast<int64_t>(data.holdout_seed);
  schema.integer("holdout_seed", seed, 0);
  data.holdout_seed = static_cast<uint64_t>(seed);
  schema.choice("preset", data.preset, std::vector<std::string>{"", "imagenet", "inception", "cifar10", "mnist"});
  schema.number_list("mean", data.mean, kAny);
  schema.number_list("std", data.std, {1e-9, kMax});
  schema.choice("interpolation", data.interpolation,
                std::vector<std::string>{"", "nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"});
  schema.number("crop_pct", data.crop_pct, {0.01, 1});
  schema.choice<data::Unreadable>("unreadable", data.unreadable,
                                  {{"error", data::Unreadable::error},
                                   {"skip", data::Unreadable::replace},
                                   {"leave_out", data::Unreadable::leave_out}});
  schema.boolean("balance", data.balance);
  schema.boolean("exif", data.exif);
  schema.integer("keep_decoded_mb", data.keep_decoded_mb, 0, kMaxCacheMb);
  schema.integer("workers", data.workers, 0, 1024);
  schema.integer("in_flight", data.in_flight, 1, 1024);
}

void describe_optimizer(Schema& schema, Recipe& recipe) {
  schema.choice("name", recipe.optimizer.kind, std::vector<std::string>{"adamw", "sgd", "lamb", "lion"});
  schema.number("lr", recipe.lr, kNonNegative);
  schema.number("weight_decay", recipe.groups.weight_decay, kNonNegative);
  schema.number("beta1", recipe.optimizer.beta1, kFraction);
  schema.number("beta2", recipe.optimizer.beta2, kFraction);
  schema.number("eps", recipe.optimizer.eps, kNonNegative);
  schema.number("momentum", recipe.optimizer.momentum, kFraction);
  schema.boolean("nesterov", recipe.optimizer.nesterov);
  schema.number("layer_decay", recipe.groups.layer_decay, kFraction);
  schema.string_list("no_decay", recipe.groups.no_decay);
}

void describe_schedule(Schema& schema, ScheduleRecipe& schedule) {
  schema.choice("name", schedule.name, std::vector<std::string>{"cosine", "linear", "step", "constant"});
  schema.number("final_lr", schedule.final_lr, kNonNegative);
  schema.number("warmup_epochs", schedule.warmup_epochs, kEpochs);
  schema.number("warmup_lr", schedule.warmup_lr, kNonNegative);
  schema.boolean("warmup_prefix", schedule.warmup_prefix);
  schema.number("decay_epochs", schedule.decay_epochs, kEpochs);
  schema.number("decay_factor", schedule.decay_factor, kFraction);
}

void describe_filter(Schema& schema, const char* name, image::Filter& filter) {
  using image::Filter;
  schema.choice<Filter>(name, filter,
                        {{"nearest", Filter::nearest},
                         {"lanczos", Filter::lanczos},
                         {"bilinear", Filter::bilinear},
                         {"bicubic", Filter::bicubic},
                         {"box", Filter::box},
                         {"hamming", Filter::hamming}});
}

void describe_random_resized_crop(Schema& schema, data::RandomResizedCrop& crop) {
  schema.pair("scale", crop.scale, kFraction);
  schema.pair("ratio", crop.ratio, {0.01, 100});
  bool both = crop.interpolation.size() > 1;  // timm's "random": bilinear or bicubic, drawn per image
  schema.boolean("random_interpolation", both);
  if (both) {
    crop.interpolation = {image::Filter::bilinear, image::Filter::bicubic};
  } else {
    describe_filter(schema, "interpolation", crop.interpolation.front());
  }
}

void describe_padded_crop(Schema& schema, data::PaddedCrop& crop) {
  using Mode = data::PaddedCrop::Mode;
  schema.integer("padding", crop.padding, 0, kMaxPadding);
  schema.choice<Mode>("mode", crop.mode, {{"constant", Mode::constant}, {"reflect", Mode::reflect}});
}

void describe_affine(Schema& schema, data::RandomAffine& affine) {
  schema.number("degrees", affine.degrees, {0, 180});
  schema.pair("shift", affine.shift, kFraction);
  schema.pair("scale", affine.scale, {0.01, 100});
  describe_filter(schema, "interpolation", affine.interpolation);
}

void describe_jitter(Schema& schema, data::ColorJitter& jitter) {
  schema.number("brightness", jitter.brightness, kNonNegative);
  schema.number("contrast", jitter.contrast, kNonNegative);
  schema.number("saturation", jitter.saturation, kNonNegative);
  schema.number("hue", jitter.hue, {0, 0.5});
  schema.number("probability", jitter.probability, kFraction);
}

void describe_erasing(Schema& schema, data::RandomErasing& erasing) {
  using Mode = data::RandomErasing::Mode;
  schema.number("probability", erasing.probability, kFraction);
  schema.choice<Mode>("mode", erasing.mode,
                      {{"constant", Mode::constant}, {"colour", Mode::colour}, {"pixel", Mode::pixel}});
  schema.pair("area", erasing.area, kFraction);
  schema.pair("ratio", erasing.ratio, {0.01, 100});
  schema.pair("count", erasing.count, 1);
}

void describe_augment(Schema& schema, Recipe& recipe) {
  data::AugmentOptions& augment = recipe.augment;
  schema.optional("random_resized_crop", augment.random_resized_crop, describe_random_resized_crop);
  schema.optional("padded_crop", augment.padded_crop, describe_padded_crop);
  schema.choice<data::Flip>(
      "flip", augment.flip,
      {{"none", data::Flip::none}, {"random", data::Flip::random}, {"alternate", data::Flip::alternate}});
  schema.optional("affine", augment.affine, describe_affine);
  schema.string("policy", augment.policy);
  schema.number("policy_share", augment.policy_share, kFraction);
  schema.optional("color_jitter", augment.color_jitter, describe_jitter);
  schema.object("erasing", [&](Schema& inner) { describe_erasing(inner, augment.erasing); });
  std::vector<double> fill(augment.fill.begin(), augment.fill.end());
  schema.number_list("fill", fill, {0, 255});
  augment.fill.assign(fill.begin(), fill.end());
  schema.integer("repeats", recipe.repeats, 1, 64);
  schema.number("plain_epochs", recipe.plain_epochs, kEpochs);

  using Mode = data::MixupOptions::Mode;
  schema.number("mixup", recipe.mix.mixup_alpha, kNonNegative);
  schema.number("cutmix", recipe.mix.cutmix_alpha, kNonNegative);
  schema.number("mix_probability", recipe.mix.probability, kFraction);
  schema.number("switch_probability", recipe.mix.switch_probability, kFraction);
  schema.choice<Mode>("mix_mode", recipe.mix.mode, {{"batch", Mode::batch}, {"element", Mode::element}});
  schema.number("unmixed_epochs", recipe.unmixed_epochs, kEpochs);
}

void describe_distillation(Schema& schema, DistillationRecipe& distillation) {
  schema.string("teacher", distillation.teacher);
  schema.choice("kind", distillation.kind, std::vector<std::string>{"soft", "hard"});
  schema.number("alpha", distillation.alpha, kFraction);
  schema.number("temperature", distillation.temperature, {1e-3, kMax});
  schema.integer("views", distillation.views, 0, 1'000'000);
  schema.integer("view_epochs", distillation.view_epochs, 0);
  schema.string("cache", distillation.cache);
}

void describe_token_drop(Schema& schema, TokenDropRecipe& drop) {
  schema.number("rate", drop.rate, {0, 0.99});
  schema.number("until", drop.until, kFraction);
}

void describe_loss(Schema& schema, LossRecipe& loss) {
  schema.choice("name", loss.name, std::vector<std::string>{"cross_entropy", "bce"});
  schema.number("label_smoothing", loss.label_smoothing, kFraction);
  schema.number("bce_threshold", loss.bce_threshold, kFraction);
  schema.boolean("bce_sum", loss.bce_sum);
  schema.choice("class_weighting", loss.class_weighting, std::vector<std::string>{"none", "inverse_frequency"});
  schema.number_list("class_weights", loss.class_weights, {1e-9, kMax});
  schema.optional("distillation", loss.distillation, describe_distillation);
}

void describe_ema(Schema& schema, optim::EmaOptions& ema) {
  schema.number("decay", ema.decay, kFraction);
  schema.boolean("warmup", ema.warmup);
  schema.number("warmup_gamma", ema.warmup_gamma, {1e-9, kMax});
  schema.number("warmup_power", ema.warmup_power, kNonNegative);
  schema.number("min_decay", ema.min_decay, kFraction);
  schema.integer("after_step", ema.after_step, 0, kMaxSteps);
}

void describe_segment(Schema& schema, SegmentRecipe& segment) {
  schema.integer("image_size", segment.image_size, 0, 1 << 14);
  schema.boolean("train_encoder", segment.train_encoder);
  schema.integer("window", segment.window, 0, 1 << 10);
  schema.integer("global_every", segment.global_every, 1, 1 << 10);
  schema.integer("decoder_dim", segment.decoder_dim, 16, 1 << 12);
  schema.integer("decoder_depth", segment.decoder_depth, 1, 64);
  schema.integer("decoder_mlp", segment.decoder_mlp, 1, 1 << 16);
  schema.integer("prompts", segment.prompts, 1, 1024);
  schema.integer("rounds", segment.rounds, 1, 32);
  schema.number("box_share", segment.box_share, kFraction);
  schema.number("focal_weight", segment.focal_weight, kNonNegative);
  schema.number("dice_weight", segment.dice_weight, kNonNegative);
  schema.number("iou_weight", segment.iou_weight, kNonNegative);
  schema.number("focal_alpha", segment.focal_alpha, kFraction);
  schema.number("focal_gamma", segment.focal_gamma, kNonNegative);
  schema.string("cache", segment.cache);
}

void describe(Schema& schema, Recipe& recipe) {
  schema.choice("objective", recipe.objective, std::vector<std::string>{"classify", "probe", "segment"});
  if (recipe.objective == "segment") {
    if (!recipe.segment) recipe.segment.emplace();
    schema.object("segment", [&](Schema& inner) { describe_segment(inner, *recipe.segment); });
  }
  schema.object("data", [&](Schema& inner) { describe_data(inner, recipe.data); });
  schema.integer("epochs", recipe.epochs, 1, kMaxEpochs);
  schema.integer("batch_size", recipe.batch_size, 1, 1'000'000);
  schema.integer("accumulate", recipe.accumulate, 1, 1'000'000);
  schema.choice("precision", recipe.precision, std::vector<std::string>{"fp32", "half", "bf16"});
  if (recipe.precision == "half") recipe.precision = "bf16";  // the 16-bit precision of training
  auto seed = static_cast<int64_t>(recipe.seed);
  schema.integer("seed", seed, 0);
  recipe.seed = static_cast<uint64_t>(seed);
  schema.object("optimizer", [&](Schema& inner) { describe_optimizer(inner, recipe); });
  schema.number("clip", recipe.clip, kNonNegative);
  schema.object("schedule", [&](Schema& inner) { describe_schedule(inner, recipe.schedule); });
  schema.object("augment", [&](Schema& inner) { describe_augment(inner, recipe); });
  schema.optional("token_drop", recipe.token_drop, describe_token_drop);
  schema.object("loss", [&](Schema& inner) { describe_loss(inner, recipe.loss); });
  schema.optional("ema", recipe.ema, describe_ema);
  schema.object("checkpoint", [&](Schema& inner) {
    inner.integer("every_steps", recipe.checkpoint.every_steps, 0);
    inner.number("every_minutes", recipe.checkpoint.every_minutes, kNonNegative);
  });
  schema.choice("non_finite", recipe.non_finite, std::vector<std::string>{"stop", "skip"});
  schema.integer("validate_every", recipe.validate_every, 1);
  schema.integer("patience", recipe.patience, 0);
  schema.integer("log_every", recipe.log_every, 1);
}

// Reads "model".  Its fields and those of model_args are mixed in one object; they are separated here, because
// describe_model() checks the former and models::read_model_args() the latter.
void read_model(const Json& json, ModelRecipe& model, std::vector<std::string>& problems) {
  if (!json.is_object()) {
    problems.push_back("model: expected a registered name or an object, got " + json.dump());
    return;
  }
  static const std::vector<std::string> kRecipeFields{
      "architecture", "init",   "config",       "key_map",    "positions",
      "mimetic",      "freeze", "linear_probe", "model_args", "activation_checkpointing"};
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
  SchemaReader reader(own, "model", problems);
  describe_model(reader, model);
  reader.finish();
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

void check_class_weights(const Recipe& recipe, std::vector<std::string>& problems) {
  const LossRecipe& loss = recipe.loss;
  const bool given = !loss.class_weights.empty(), weighted = given || loss.class_weighting != "none";
  const char* const field = given ? "loss.class_weights" : "loss.class_weighting";
  if (given && loss.class_weighting != "none")
    problems.push_back("loss.class_weighting: expected \"none\" together with class_weights, got another one");
  if (!weighted) return;
  if (loss.name != "cross_entropy")
    problems.push_back(str(field, ": expected loss.name \"cross_entropy\", got \"", loss.name, "\""));
  if (loss.distillation) problems.push_back(str(field, ": expected no distillation, got a teacher"));
  if (recipe.data.balance)
    problems.push_back(str(field, ": expected data.balance false, which weights the classes too, got true"));
  if (recipe.objective == "probe") problems.push_back(str(field, ": expected no weights for a probe, got some"));
}

// Checks conditions on several fields.
void check_consistency(const Recipe& recipe, std::vector<std::string>& problems) {
  auto require = [&](bool condition, const std::string& problem) {
    if (!condition) problems.push_back(problem);
  };
  require(recipe.epochs > 0, "epochs: expected an integer of at least 1, got nothing");
  require(!recipe.data.train.empty(), "data.train: expected the path of a dataset, here or after --data, got nothing");
  require(recipe.objective != "probe" || !recipe.model.init.empty(),
          "model.init: expected the pretrained model of the probe, here or after -m, got none");
  require(!recipe.augment.padded_crop || !recipe.augment.random_resized_crop,
          "augment: expected one of padded_crop and random_resized_crop, got both");
  require(!recipe.loss.distillation || !recipe.loss.distillation->teacher.empty(),
          "loss.distillation.teacher: expected a model, got nothing");
  require(!recipe.model.linear_probe || !recipe.model.init.empty(),
          "model.linear_probe: expected a model to start from in model.init or after -m, got none");
  require(recipe.model.init.empty() || (recipe.model.positions == "drawn" && !recipe.model.mimetic),
          "model.init: expected none together with positions or mimetic, which need a model from scratch, got a model");
  require(!recipe.loss.distillation || recipe.loss.distillation->views == 0 ||
              (recipe.repeats == 1 && recipe.data.unreadable != data::Unreadable::replace),
          "loss.distillation.views: expected augment.repeats 1 and data.unreadable not \"skip\", because a view must "
          "always show the same image, got other settings");
  require(!recipe.loss.distillation || !recipe.loss.distillation->view_epochs ||
              (recipe.loss.distillation->views > 0 && !recipe.mix.any()),
          "loss.distillation.view_epochs: expected views above 0 and neither mixup nor cutmix, got other settings");
  require(!recipe.data.balance || !recipe.loss.distillation || recipe.loss.distillation->views == 0,
          "data.balance: expected false together with loss.distillation.views, because an image may be shown several "
          "times, got true");
  require(recipe.data.unreadable != data::Unreadable::leave_out || !recipe.mix.any(),
          "data.unreadable: expected \"error\" or \"skip\" together with mixup or cutmix, got \"leave_out\"");
  require(recipe.data.train_split.empty() || recipe.data.train_split != recipe.data.val_split ||
              recipe.data.train != recipe.data.val,
          "data.val_split: expected another split than data.train_split, got the same");
  require(
      recipe.data.folds == 0 ? recipe.data.fold == 0 : recipe.data.fold >= 1 && recipe.data.fold <= recipe.data.folds,
      str("data.fold: expected 1 to data.folds, or 0 without folds, got ", recipe.data.fold));
  require(recipe.data.folds == 0 || (!recipe.data.holdout && recipe.data.val.empty()),
          "data.folds: expected neither data.holdout nor data.val, got one");
  check_class_weights(recipe, problems);
  check_segment_recipe(recipe, problems);
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
  SchemaReader reader(json, "", problems);
  reader.accept("model");
  describe(reader, recipe);
  reader.finish();
  if (recipe.objective == "probe" && recipe.epochs == 0) recipe.epochs = 1;  // it reads the images once
  if (problems.empty()) check_consistency(recipe, problems);
  if (problems.empty()) return recipe;
  std::string message = where + ": invalid recipe:";
  for (const std::string& problem : problems) message += "\n  " + problem;
  throw Error(message);
}

Recipe read_recipe(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  return parse_recipe(read_text_file(find_installed(file).value_or(file), kMaxRecipeBytes), file.string(), overrides);
}

std::string write_recipe(const Recipe& given) {
  Recipe recipe = given;
  SchemaWriter model;
  describe_model(model, recipe.model);
  Json model_json = model.json();
  model_json["model_args"] = Json::parse(recipe.model.model_args.empty() ? "{}" : recipe.model.model_args);
  SchemaWriter other;
  describe(other, recipe);
  Json json{{"objective", recipe.objective}, {"model", model_json}};
  for (const auto& item : other.json().items()) json[item.key()] = item.value();
  return json.dump(2) + "\n";
}

}  // namespace vitrail::train
