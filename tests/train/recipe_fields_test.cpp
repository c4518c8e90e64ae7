// SPDX-License-Identifier: Apache-2.0
// Each field of a recipe: its member, and the values that it takes.
#include <functional>
#include <set>

#include "tests/train/detection_fixture.h"
#include "tests/train/segment_fixture.h"
#include "tests/train/semantic_fixture.h"
#include "vitrail/base/fields.h"
#include "vitrail/train/recipe/recipe_overrides_internal.h"

namespace vitrail::train {
namespace {

Recipe recipe_of_setting(const std::string& setting, const std::string& objective = "") {
  const std::string text = objective == "segment"    ? tiny_segment_recipe("x")
                           : objective == "semantic" ? tiny_semantic_recipe("x")
                           : objective == "detect"   ? tiny_detection_recipe("x")
                                                     : tiny_recipe("x");
  return parse_recipe(text, "r.json", {setting});
}

struct RecipeField {
  const char* setting;  // "path=value"
  std::function<bool(const Recipe&)> is_set;
};

std::vector<RecipeField> recipe_fields() {
  using Filter = image::Filter;
  return {
      {"model.architecture=cifar_vit_d192", [](auto& r) { return r.model.architecture == "cifar_vit_d192"; }},
      {"model.positions=sincos2d", [](auto& r) { return r.model.positions == "sincos2d"; }},
      {R"(model.mimetic={"qk_noise": 0.1})", [](auto& r) { return r.model.mimetic->qk_noise == 0.1; }},
      {R"(model.mimetic={"qk_identity": 0.1})", [](auto& r) { return r.model.mimetic->qk_identity == 0.1; }},
      {R"(model.mimetic={"vo_noise": 0.1})", [](auto& r) { return r.model.mimetic->vo_noise == 0.1; }},
      {R"(model.mimetic={"vo_identity": 0.1})", [](auto& r) { return r.model.mimetic->vo_identity == 0.1; }},
      {R"(model.freeze=["a*"])", [](auto& r) { return r.model.freeze == std::vector<std::string>{"a*"}; }},
      {R"(model={"init": "m", "head": "probe"})", [](auto& r) { return r.model.head == "probe"; }},
      {"model.activation_checkpointing=true", [](auto& r) { return r.model.activation_checkpointing; }},
      {"model.config=c", [](auto& r) { return r.model.config == "c"; }},
      {"model.key_map=k", [](auto& r) { return r.model.key_map == "k"; }},
      {R"(model={"init": "m", "adapter": "a"})", [](auto& r) { return r.model.adapter == "a"; }},
      {"data.train=t", [](auto& r) { return r.data.train == "t"; }},
      {"data.val=v", [](auto& r) { return r.data.val == "v"; }},
      {"data.test=s", [](auto& r) { return r.data.test == "s"; }},
      {"data.columns=file=a", [](auto& r) { return r.data.columns == "file=a"; }},
      {"data.train_split=t", [](auto& r) { return r.data.train_split == "t"; }},
      {"data.val_split=v", [](auto& r) { return r.data.val_split == "v"; }},
      {"data.test_split=s", [](auto& r) { return r.data.test_split == "s"; }},
      {R"(data={"train": "x", "folds": 3, "fold": 2})", [](auto& r) { return r.data.folds == 3 && r.data.fold == 2; }},
      {"data.holdout=5", [](auto& r) { return r.data.holdout == 5; }},
      {"data.holdout_seed=6", [](auto& r) { return r.data.holdout_seed == 6; }},
      {"data.preset=cifar10", [](auto& r) { return r.data.preset == "cifar10"; }},
      {"data.mean=[0.1]", [](auto& r) { return r.data.mean == std::vector<double>{0.1}; }},
      {"data.std=[0.2]", [](auto& r) { return r.data.std == std::vector<double>{0.2}; }},
      {"data.interpolation=box", [](auto& r) { return r.data.interpolation == "box"; }},
      {"data.crop_pct=0.5", [](auto& r) { return r.data.crop_pct == 0.5; }},
      {"data.unreadable=skip", [](auto& r) { return r.data.unreadable == data::Unreadable::replace; }},
      {"data.balance=true", [](auto& r) { return r.data.balance; }},
      {"data.retrain=true", [](auto& r) { return r.data.retrain; }},
      {"data.exif=true", [](auto& r) { return r.data.exif; }},
      {"data.keep_decoded_mb=7", [](auto& r) { return r.data.keep_decoded_mb == 7; }},
      {"data.workers=8", [](auto& r) { return r.data.workers == 8; }},
      {"data.in_flight=9", [](auto& r) { return r.data.in_flight == 9; }},
      {"epochs=10", [](auto& r) { return r.epochs == 10; }},
      {"batch_size=11", [](auto& r) { return r.batch_size == 11; }},
      {"accumulate=12", [](auto& r) { return r.accumulate == 12; }},
      {"precision=bf16", [](auto& r) { return r.precision == "bf16"; }},
      {"seed=13", [](auto& r) { return r.seed == 13; }},
      {"optimizer.name=lamb", [](auto& r) { return r.optimizer.kind == "lamb"; }},
      {"optimizer.lr=0.1", [](auto& r) { return r.lr == 0.1; }},
      {"optimizer.weight_decay=0.2", [](auto& r) { return r.groups.weight_decay == 0.2; }},
      {"optimizer.beta1=0.3", [](auto& r) { return r.optimizer.beta1 == 0.3; }},
      {"optimizer.beta2=0.4", [](auto& r) { return r.optimizer.beta2 == 0.4; }},
      {"optimizer.eps=0.5", [](auto& r) { return r.optimizer.eps == 0.5; }},
      {"optimizer.momentum=0.6", [](auto& r) { return r.optimizer.momentum == 0.6; }},
      {"optimizer.nesterov=true", [](auto& r) { return r.optimizer.nesterov; }},
      {"optimizer.layer_decay=0.7", [](auto& r) { return r.groups.layer_decay == 0.7; }},
      {R"(optimizer.no_decay=["n"])", [](auto& r) { return r.groups.no_decay == std::vector<std::string>{"n"}; }},
      {"clip=0.8", [](auto& r) { return r.clip == 0.8; }},
      {"clip_per_tensor=true", [](auto& r) { return r.clip_per_tensor; }},
      {"schedule.name=step", [](auto& r) { return r.schedule.name == "step"; }},
      {"schedule.final_lr=0.1", [](auto& r) { return r.schedule.final_lr == 0.1; }},
      {"schedule.warmup_epochs=0.2", [](auto& r) { return r.schedule.warmup_epochs == 0.2; }},
      {"schedule.warmup_lr=0.3", [](auto& r) { return r.schedule.warmup_lr == 0.3; }},
      {"schedule.warmup_prefix=false", [](auto& r) { return !r.schedule.warmup_prefix; }},
      {"schedule.decay_epochs=0.4", [](auto& r) { return r.schedule.decay_epochs == 0.4; }},
      {"schedule.decay_factor=0.5", [](auto& r) { return r.schedule.decay_factor == 0.5; }},
      {"schedule.final_weight_decay=0.4", [](auto& r) { return r.schedule.final_weight_decay == 0.4; }},
      {"augment.padded_crop.padding=3", [](auto& r) { return r.augment.padded_crop->padding == 3; }},
      {"augment.padded_crop.mode=reflect",
       [](auto& r) { return r.augment.padded_crop->mode == data::PaddedCrop::Mode::reflect; }},
      {"augment.flip=alternate", [](auto& r) { return r.augment.flip == data::Flip::alternate; }},
      {"augment.affine.degrees=15", [](auto& r) { return r.augment.affine->degrees == 15; }},
      {"augment.affine.shift=[0.1, 0.2]",
       [](auto& r) {
         return r.augment.affine->shift == std::array<double, 2>{0.1, 0.2};
       }},
      {"augment.affine.scale=[0.5, 2]",
       [](auto& r) {
         return r.augment.affine->scale == std::array<double, 2>{0.5, 2};
       }},
      {"augment.affine.interpolation=bicubic",
       [](auto& r) { return r.augment.affine->interpolation == Filter::bicubic; }},
      {"augment.policy=trivialaugment", [](auto& r) { return r.augment.policy == "trivialaugment"; }},
      {"augment.policy_share=0.6", [](auto& r) { return r.augment.policy_share == 0.6; }},
      {"augment.color_jitter.brightness=0.1", [](auto& r) { return r.augment.color_jitter->brightness == 0.1; }},
      {"augment.color_jitter.contrast=0.2", [](auto& r) { return r.augment.color_jitter->contrast == 0.2; }},
      {"augment.color_jitter.saturation=0.3", [](auto& r) { return r.augment.color_jitter->saturation == 0.3; }},
      {"augment.color_jitter.hue=0.4", [](auto& r) { return r.augment.color_jitter->hue == 0.4; }},
      {"augment.color_jitter.probability=0.5", [](auto& r) { return r.augment.color_jitter->probability == 0.5; }},
      {"augment.grayscale=0.2", [](auto& r) { return r.augment.grayscale == 0.2; }},
      {"augment.blur.probability=0.3", [](auto& r) { return r.augment.blur->probability == 0.3; }},
      {"augment.blur.radius=[0.2, 1]",
       [](auto& r) {
         return r.augment.blur->radius == std::array<double, 2>{0.2, 1};
       }},
      {"augment.solarize.probability=0.1", [](auto& r) { return r.augment.solarize->probability == 0.1; }},
      {"augment.solarize.threshold=100", [](auto& r) { return r.augment.solarize->threshold == 100; }},
      {"augment.erasing.probability=0.6", [](auto& r) { return r.augment.erasing.probability == 0.6; }},
      {"augment.erasing.mode=colour",
       [](auto& r) { return r.augment.erasing.mode == data::RandomErasing::Mode::colour; }},
      {"augment.erasing.area=[0.1, 0.3]",
       [](auto& r) {
         return r.augment.erasing.area == std::array<double, 2>{0.1, 0.3};
       }},
      {"augment.erasing.ratio=[0.5, 2]",
       [](auto& r) {
         return r.augment.erasing.ratio == std::array<double, 2>{0.5, 2};
       }},
      {"augment.erasing.count=[2, 3]",
       [](auto& r) {
         return r.augment.erasing.count == std::array<int64_t, 2>{2, 3};
       }},
      {"augment.fill=[1, 2, 3]",
       [](auto& r) {
         return r.augment.fill == std::vector<int>{1, 2, 3};
       }},
      {"augment.repeats=4", [](auto& r) { return r.repeats == 4; }},
      {"augment.plain_epochs=1.5", [](auto& r) { return r.plain_epochs == 1.5; }},
      {"augment.mixup=0.1", [](auto& r) { return r.mix.mixup_alpha == 0.1; }},
      {"augment.cutmix=0.3", [](auto& r) { return r.mix.cutmix_alpha == 0.3; }},
      {"augment.mix_probability=0.4", [](auto& r) { return r.mix.probability == 0.4; }},
      {"augment.switch_probability=0.7", [](auto& r) { return r.mix.switch_probability == 0.7; }},
      {"augment.mix_mode=element", [](auto& r) { return r.mix.mode == data::MixupOptions::Mode::element; }},
      {"augment.unmixed_epochs=2.5", [](auto& r) { return r.unmixed_epochs == 2.5; }},
      {"token_drop.rate=0.3", [](auto& r) { return r.token_drop->rate == 0.3; }},
      {"token_drop.until=0.4", [](auto& r) { return r.token_drop->until == 0.4; }},
      {"loss.name=bce", [](auto& r) { return r.loss.name == "bce"; }},
      {"loss.label_smoothing=0.3", [](auto& r) { return r.loss.label_smoothing == 0.3; }},
      {"loss.bce_threshold=0.2", [](auto& r) { return r.loss.bce_threshold == 0.2; }},
      {"loss.bce_sum=true", [](auto& r) { return r.loss.bce_sum; }},
      {"loss.class_weighting=inverse_frequency", [](auto& r) { return r.loss.class_weighting == "inverse_frequency"; }},
      {"loss.class_weights=[1, 2]",
       [](auto& r) {
         return r.loss.class_weights == std::vector<double>{1, 2};
       }},
      {R"(loss.distillation={"teacher": "t"})", [](auto& r) { return r.loss.distillation->teacher == "t"; }},
      {R"(loss.distillation={"teacher": "t", "kind": "hard"})",
       [](auto& r) { return r.loss.distillation->kind == "hard"; }},
      {R"(loss.distillation={"teacher": "t", "alpha": 0.2})",
       [](auto& r) { return r.loss.distillation->alpha == 0.2; }},
      {R"(loss.distillation={"teacher": "t", "temperature": 0.5})",
       [](auto& r) { return r.loss.distillation->temperature == 0.5; }},
      {R"(loss.distillation={"teacher": "t", "views": 2})", [](auto& r) { return r.loss.distillation->views == 2; }},
      {R"(loss.distillation={"teacher": "t", "cache": "c"})",
       [](auto& r) { return r.loss.distillation->cache == "c"; }},
      {"ema.decay=0.2", [](auto& r) { return r.ema->decay == 0.2; }},
      {"ema.warmup=true", [](auto& r) { return r.ema->warmup; }},
      {"ema.warmup_gamma=3", [](auto& r) { return r.ema->warmup_gamma == 3; }},
      {"ema.warmup_power=0.4", [](auto& r) { return r.ema->warmup_power == 0.4; }},
      {"ema.min_decay=0.1", [](auto& r) { return r.ema->min_decay == 0.1; }},
      {"ema.after_step=5", [](auto& r) { return r.ema->after_step == 5; }},
      {"checkpoint.every_steps=6", [](auto& r) { return r.checkpoint.every_steps == 6; }},
      {"explain.every=8", [](auto& r) { return r.explain.every == 8; }},
      {"checkpoint.every_minutes=7", [](auto& r) { return r.checkpoint.every_minutes == 7; }},
      {"non_finite=skip", [](auto& r) { return r.non_finite == "skip"; }},
      {"validate_every=2", [](auto& r) { return r.validate_every == 2; }},
      {"patience=3", [](auto& r) { return r.patience == 3; }},
      {"log_every=4", [](auto& r) { return r.log_every == 4; }}};
}

TEST(RecipeFields, SetTheMembersOfTheirNames) {
  for (const auto& [setting, is_set] : recipe_fields()) {
    const Recipe recipe = recipe_of_setting(setting);
    EXPECT_TRUE(is_set(recipe)) << setting;
    EXPECT_TRUE(is_set(parse_recipe(write_recipe(recipe), "r.json"))) << setting << ", written and read";
  }
}

TEST(RecipeFields, OfRandomResizedCropsSetTheirMembers) {
  using Filters = std::vector<image::Filter>;
  const auto crop_with = [](const std::string& fields) {
    const std::string crop = R"(augment={"random_resized_crop": {)" + fields + "}}";
    return *recipe_of_setting(crop).augment.random_resized_crop;
  };
  EXPECT_EQ(crop_with(R"("scale": [0.5, 1])").scale, (std::array<double, 2>{0.5, 1}));
  EXPECT_EQ(crop_with(R"("ratio": [0.25, 4])").ratio, (std::array<double, 2>{0.25, 4}));
  EXPECT_EQ(crop_with("").interpolation, Filters{image::Filter::bicubic});
  for (const auto& [name, filter] : {std::pair{"nearest", image::Filter::nearest},
                                     {"lanczos", image::Filter::lanczos},
                                     {"bilinear", image::Filter::bilinear},
                                     {"bicubic", image::Filter::bicubic},
                                     {"box", image::Filter::box},
                                     {"hamming", image::Filter::hamming}}) {
    EXPECT_EQ(crop_with(std::string(R"("interpolation": ")") + name + '"').interpolation, Filters{filter}) << name;
  }
  EXPECT_EQ(crop_with(R"("random_interpolation": true)").interpolation,
            (Filters{image::Filter::bilinear, image::Filter::bicubic}));
}

std::vector<RecipeField> segment_fields() {
  return {{"segment.image_size=64", [](auto& r) { return segment_of(r).image_size == 64; }},
          {"segment.train_encoder=false", [](auto& r) { return !segment_of(r).train_encoder; }},
          {"segment.window=1", [](auto& r) { return segment_of(r).window == 1; }},
          {"segment.global_every=5", [](auto& r) { return segment_of(r).global_every == 5; }},
          {"segment.decoder_dim=48", [](auto& r) { return segment_of(r).decoder_dim == 48; }},
          {"segment.decoder_depth=3", [](auto& r) { return segment_of(r).decoder_depth == 3; }},
          {"segment.decoder_mlp=65", [](auto& r) { return segment_of(r).decoder_mlp == 65; }},
          {"segment.prompts=6", [](auto& r) { return segment_of(r).prompts == 6; }},
          {"segment.rounds=7", [](auto& r) { return segment_of(r).rounds == 7; }},
          {"segment.box_share=0.1", [](auto& r) { return segment_of(r).box_share == 0.1; }},
          {"segment.focal_weight=0.2", [](auto& r) { return segment_of(r).focal_weight == 0.2; }},
          {"segment.dice_weight=0.3", [](auto& r) { return segment_of(r).dice_weight == 0.3; }},
          {"segment.iou_weight=0.4", [](auto& r) { return segment_of(r).iou_weight == 0.4; }},
          {"segment.focal_alpha=0.5", [](auto& r) { return segment_of(r).focal_alpha == 0.5; }},
          {"segment.focal_gamma=1.5", [](auto& r) { return segment_of(r).focal_gamma == 1.5; }},
          {"segment.cache=c", [](auto& r) { return segment_of(r).cache == "c"; }}};
}

std::vector<RecipeField> semantic_fields() {
  return {
      {"semantic.head=dpt", [](auto& r) { return semantic_of(r).head == models::SemanticHead::dpt; }},
      {"semantic.train_backbone=false", [](auto& r) { return !semantic_of(r).train_backbone; }},
      {"semantic.layers=[1]", [](auto& r) { return semantic_of(r).layers == std::vector<int64_t>{1}; }},
      {"semantic.batch_norm=false", [](auto& r) { return !semantic_of(r).batch_norm; }},
      {"semantic.ignored=3", [](auto& r) { return semantic_of(r).ignored == 3; }},
      {"semantic.reduce_labels=true", [](auto& r) { return semantic_of(r).reduce_labels; }},
      {R"(semantic.classes=["a"])", [](auto& r) { return semantic_of(r).classes == std::vector<std::string>{"a"}; }}};
}

std::vector<RecipeField> detection_fields() {
  return {{"detect.train_backbone=false", [](auto& r) { return !detection_of(r).train_backbone; }},
          {"detect.size=448", [](auto& r) { return detection_of(r).size == 448; }},
          {"detect.groups=5", [](auto& r) { return detection_of(r).groups == 5; }},
          {"detect.mosaic=0.25", [](auto& r) { return detection_of(r).mosaic == 0.25; }},
          {"detect.windows=4", [](auto& r) { return detection_of(r).windows == 4; }},
          {"detect.queries=50", [](auto& r) { return detection_of(r).queries == 50; }},
          {"detect.layers=3", [](auto& r) { return detection_of(r).layers == 3; }},
          {"detect.width=128", [](auto& r) { return detection_of(r).width == 128; }}};
}

TEST(RecipeFields, OfDenseObjectivesSetTheMembersOfTheirNames) {
  for (const auto& [objective, fields] :
       {std::pair{"segment", segment_fields()}, {"semantic", semantic_fields()}, {"detect", detection_fields()}}) {
    for (const auto& [setting, is_set] : fields) {
      const Recipe recipe = recipe_of_setting(setting, objective);
      EXPECT_TRUE(is_set(recipe)) << setting;
      EXPECT_TRUE(is_set(parse_recipe(write_recipe(recipe), "r.json"))) << setting << ", written and read";
    }
  }
}

// The paths that a setting sets: of an object those of its fields.
std::set<std::string> paths_of(const std::string& setting) {
  const size_t equals = setting.find('=');
  const std::string path = setting.substr(0, equals);
  const auto value = nlohmann::json::parse(setting.substr(equals + 1), nullptr, false);
  if (!value.is_object()) return {path};
  std::set<std::string> paths;
  for (const auto& item : value.items()) paths.insert(path + "." + item.key());
  return paths;
}

TEST(RecipeFields, EachHasACaseAbove) {
  std::set<std::string> paths{"objective",   "loss.distillation.view_epochs",  // in other tests
                              "lora.rank",   "lora.alpha",
                              "lora.layers",  //
                              "lora.dropout"};
  for (const auto& fields : {recipe_fields(), segment_fields(), semantic_fields(), detection_fields()}) {
    for (const RecipeField& field : fields) paths.merge(paths_of(field.setting));
  }
  for (const char* objective : {"segment", "semantic", "detect"}) {
    for (const FieldRow& row : rows_of(describe_recipe, Recipe{.objective = objective})) {
      const bool of_crop = row.name.starts_with("augment.random_resized_crop.");
      EXPECT_TRUE(of_crop || paths.contains(row.name)) << row.name << ": add a case";
    }
  }
}

// A field's smallest and largest values, and values that are just too small and too large; "" where there is no limit.
struct FieldLimits {
  const char *field, *too_small, *smallest, *largest, *too_large;
  const char* objective = "";
};

TEST(RecipeFields, AreRefusedOutsideOfTheirLimits) {
  const std::vector<FieldLimits> all{{"data.holdout", "-1", "0", "", ""},
                                     {"data.holdout_seed", "-1", "0", "", ""},
                                     {"data.std", "[0]", "[1e-9]", "", ""},
                                     {"data.crop_pct", "0.009", "0.01", "1", "1.01"},
                                     {"data.keep_decoded_mb", "-1", "0", "1073741824", "1073741825"},
                                     {"data.workers", "-1", "0", "1024", "1025"},
                                     {"data.in_flight", "0", "1", "1024", "1025"},
                                     {"epochs", "0", "1", "1000000", "1000001"},
                                     {"batch_size", "0", "1", "1000000", "1000001"},
                                     {"accumulate", "0", "1", "1000000", "1000001"},
                                     {"seed", "-1", "0", "", ""},
                                     {"optimizer.lr", "-0.1", "0", "", ""},
                                     {"optimizer.weight_decay", "-0.1", "0", "", ""},
                                     {"optimizer.beta1", "-0.1", "0", "1", "1.1"},
                                     {"optimizer.beta2", "-0.1", "0", "1", "1.1"},
                                     {"optimizer.eps", "-0.1", "0", "", ""},
                                     {"optimizer.momentum", "-0.1", "0", "1", "1.1"},
                                     {"optimizer.layer_decay", "-0.1", "0", "1", "1.1"},
                                     {"clip", "-0.1", "0", "", ""},
                                     {"schedule.final_lr", "-0.1", "0", "", ""},
                                     {"schedule.final_weight_decay", "-0.1", "0", "", ""},
                                     {"schedule.warmup_epochs", "-0.1", "0", "1e6", "1e7"},
                                     {"schedule.warmup_lr", "-0.1", "0", "", ""},
                                     {"schedule.decay_epochs", "-0.1", "0", "1e6", "1e7"},
                                     {"schedule.decay_factor", "-0.1", "0", "1", "1.1"},
                                     {"augment.padded_crop.padding", "-1", "0", "10000", "10001"},
                                     {"augment.affine.degrees", "-1", "0", "180", "181"},
                                     {"augment.affine.shift", "[-0.1, 0]", "[0, 0]", "[1, 1]", "[0, 1.1]"},
                                     {"augment.affine.scale", "[0.009, 1]", "[0.01, 1]", "[1, 100]", "[1, 101]"},
                                     {"augment.policy_share", "-0.1", "0", "1", "1.1"},
                                     {"augment.color_jitter.brightness", "-0.1", "0", "", ""},
                                     {"augment.color_jitter.contrast", "-0.1", "0", "", ""},
                                     {"augment.color_jitter.saturation", "-0.1", "0", "", ""},
                                     {"augment.color_jitter.hue", "-0.1", "0", "0.5", "0.51"},
                                     {"augment.color_jitter.probability", "-0.1", "0", "1", "1.1"},
                                     {"augment.grayscale", "-0.1", "0", "1", "1.1"},
                                     {"augment.blur.probability", "-0.1", "0", "1", "1.1"},
                                     {"augment.blur.radius", "[-0.1, 1]", "[0, 1]", "[1, 100]", "[1, 101]"},
                                     {"augment.solarize.probability", "-0.1", "0", "1", "1.1"},
                                     {"augment.solarize.threshold", "-1", "0", "256", "257"},
                                     {"augment.erasing.probability", "-0.1", "0", "1", "1.1"},
                                     {"augment.erasing.area", "[-0.1, 1]", "[0, 1]", "[0, 1]", "[0, 1.1]"},
                                     {"augment.erasing.ratio", "[0.009, 1]", "[0.01, 1]", "[1, 100]", "[1, 101]"},
                                     {"augment.erasing.count", "[0, 1]", "[1, 1]", "", ""},
                                     {"augment.fill", "[-1]", "[0]", "[255]", "[256]"},
                                     {"augment.repeats", "0", "1", "64", "65"},
                                     {"augment.plain_epochs", "-0.1", "0", "1e6", "1e7"},
                                     {"augment.mixup", "-0.1", "0", "", ""},
                                     {"augment.cutmix", "-0.1", "0", "", ""},
                                     {"augment.mix_probability", "-0.1", "0", "1", "1.1"},
                                     {"augment.switch_probability", "-0.1", "0", "1", "1.1"},
                                     {"augment.unmixed_epochs", "-0.1", "0", "1e6", "1e7"},
                                     {"token_drop.rate", "-0.1", "0", "0.99", "0.999"},
                                     {"token_drop.until", "-0.1", "0", "1", "1.1"},
                                     {"loss.label_smoothing", "-0.1", "0", "1", "1.1"},
                                     {"loss.bce_threshold", "-0.1", "0", "1", "1.1"},
                                     {"loss.class_weights", "[0]", "[1e-9]", "", ""},
                                     {"ema.decay", "-0.1", "0", "1", "1.1"},
                                     {"ema.warmup_gamma", "0", "1e-9", "", ""},
                                     {"ema.warmup_power", "-0.1", "0", "", ""},
                                     {"ema.min_decay", "-0.1", "0", "1", "1.1"},
                                     {"ema.after_step", "-1", "0", "9007199254740992", "9007199254740993"},
                                     {"checkpoint.every_steps", "-1", "0", "", ""},
                                     {"checkpoint.every_minutes", "-0.1", "0", "", ""},
                                     {"explain.every", "-1", "0", "1000000", "1000001"},
                                     {"validate_every", "0", "1", "", ""},
                                     {"patience", "-1", "0", "", ""},
                                     {"log_every", "0", "1", "", ""},
                                     {"segment.image_size", "-1", "0", "16384", "16385", "segment"},
                                     {"segment.window", "-1", "0", "1024", "1025", "segment"},
                                     {"segment.global_every", "0", "1", "1024", "1025", "segment"},
                                     {"segment.decoder_dim", "15", "16", "4096", "4097", "segment"},
                                     {"segment.decoder_depth", "0", "1", "64", "65", "segment"},
                                     {"segment.decoder_mlp", "0", "1", "65536", "65537", "segment"},
                                     {"segment.prompts", "0", "1", "1024", "1025", "segment"},
                                     {"segment.rounds", "0", "1", "32", "33", "segment"},
                                     {"segment.box_share", "-0.1", "0", "1", "1.1", "segment"},
                                     {"segment.focal_weight", "-0.1", "0", "", "", "segment"},
                                     {"segment.dice_weight", "-0.1", "0", "", "", "segment"},
                                     {"segment.iou_weight", "-0.1", "0", "", "", "segment"},
                                     {"segment.focal_alpha", "-0.1", "0", "1", "1.1", "segment"},
                                     {"segment.focal_gamma", "0.99", "1", "", "", "segment"},
                                     {"semantic.layers", "[-1]", "[0]", "[1024]", "[1025]", "semantic"},
                                     {"semantic.ignored", "-1", "0", "255", "256", "semantic"}};
  for (const auto& [field, too_small, smallest, largest, too_large, objective] : all) {
    const std::string path = field;
    for (const std::string value : {smallest, largest}) {
      if (value.empty()) continue;
      EXPECT_NO_THROW(recipe_of_setting(path + "=" + value, objective)) << path << "=" << value;
    }
    for (const std::string value : {too_small, too_large}) {
      if (value.empty()) continue;
      const std::string message =
          error_of([&, objective = objective] { recipe_of_setting(path + "=" + value, objective); });
      EXPECT_TRUE(contains(message, path + ": expected")) << path << "=" << value << "\n" << message;
    }
  }
}

TEST(RecipeFields, OfLoraGoWithAModelToStartFrom) {
  const auto recipe = [](const std::string& lora) {
    return parse_recipe(tiny_recipe("x"), "r.json", {"model.init=m", "lora=" + lora});
  };
  EXPECT_EQ(recipe("{}").lora->rank, 8);
  EXPECT_EQ(recipe("{}").lora->alpha, 16);
  const Recipe all = recipe(R"({"rank": 4, "alpha": 3, "layers": "all", "dropout": 0.1})");
  const Recipe again = parse_recipe(write_recipe(all), "r.json");
  for (const nn::LoraOptions& lora : {*all.lora, *again.lora}) {
    EXPECT_EQ(std::tuple(lora.rank, lora.alpha, lora.layers, lora.dropout), std::tuple(4, 3., "all", 0.1));
  }
  for (const char* field : {"\"rank\": 1", "\"rank\": 4096", "\"alpha\": 1e-9", "\"dropout\": 0", "\"dropout\": 0.99"})
    EXPECT_NO_THROW(recipe(std::string("{") + field + "}")) << field;
  for (const char* field :
       {"\"rank\": 0", "\"rank\": 4097", "\"alpha\": 0", "\"dropout\": -0.1", "\"dropout\": 1", "\"layers\": \"k\""})
    EXPECT_TRUE(contains(error_of([&] { recipe(std::string("{") + field + "}"); }), "lora.")) << field;
}

TEST(RecipeFields, OfDistillationAreRefusedOutsideOfTheirLimits) {
  const auto recipe = [](const std::string& field) {
    return parse_recipe(tiny_recipe("x"), "r.json",
                        {"augment.mixup=0", R"(loss.distillation={"teacher": "t", )" + field + "}"});
  };
  for (const char* field : {"\"alpha\": 0", "\"alpha\": 1", "\"temperature\": 0.001", "\"views\": 1000000",
                            R"("views": 1, "view_epochs": 0)"}) {
    EXPECT_NO_THROW(recipe(field)) << field;
  }
  for (const char* field : {"\"alpha\": -0.1", "\"alpha\": 1.1", "\"temperature\": 0.0009", "\"views\": -1",
                            "\"views\": 1000001", R"("views": 1, "view_epochs": -1)", "\"view_epochs\": 1"}) {
    EXPECT_TRUE(contains(error_of([&] { recipe(field); }), "loss.distillation.")) << field;
  }
}

// Each setting alone, at its least, beside those of an objective that has no use for it.
TEST(RecipeFields, OfClassificationAreRefusedForMasks) {
  for (const auto& [setting, message] :
       {std::pair{R"(augment={"random_resized_crop": {}})", "augment: "},
        {R"(augment={"padded_crop": {}})", "augment: "},
        {R"(augment={"affine": {}})", "augment: "},
        {"augment.policy=trivialaugment", "augment: "},
        {R"(augment={"color_jitter": {}})", "augment: "},
        {"augment.grayscale=0.1", "augment: "},
        {R"(augment={"blur": {}})", "augment: "},
        {R"(augment={"solarize": {}})", "augment: "},
        {"augment.erasing.probability=0.1", "augment: "},
        {"augment.repeats=2", "augment: "},
        {"augment.plain_epochs=1", "augment: "},
        {"augment.mixup=0.1", "augment: "},
        {"augment.cutmix=0.1", "augment: "},
        {"augment.flip=alternate", "augment.flip: "},
        {"token_drop={}", "token_drop: "},
        {"loss.name=bce", "loss: "},
        {"loss.label_smoothing=0.1", "loss: "},
        {R"(loss.distillation={"teacher": "t"})", "loss: "},
        {"model.linear_probe=true", "model.linear_probe: "},
        {"model.positions=sincos2d", "model: "},
        {"model.mimetic={}", "model: "},
        {"model.activation_checkpointing=true", "model: "},
        {"data.preset=cifar10", "data: expected no preprocessing"},
        {"data.mean=[0.5]", "data: expected no preprocessing"},
        {"data.std=[0.5]", "data: expected no preprocessing"},
        {"data.interpolation=box", "data: expected no preprocessing"},
        {"data.crop_pct=0.5", "data: expected no preprocessing"},
        {"data.unreadable=leave_out", "data.unreadable: "},
        {"data.balance=true", "data: expected neither balance, folds nor retrain"},
        {R"(data={"train": "x", "folds": 2, "fold": 1})", "data: expected neither balance, folds nor retrain"},
        {"data.retrain=true", "data: expected neither balance, folds nor retrain"},
        {"model.head=probe", "model: expected neither positions, head"},
        {"model.init=x", "model: expected only init"}}) {
    const std::string got = error_of([&, setting = setting] { recipe_of_setting(setting, "segment"); });
    EXPECT_TRUE(contains(got, std::string("\n  ") + message)) << setting << "\n" << got;
  }
  EXPECT_NO_THROW(
      recipe_of_setting(R"(model={"init": "x", "freeze": ["a"], "config": "c", "key_map": "k"})", "segment"));
  EXPECT_NO_THROW(recipe_of_setting("data.unreadable=skip", "segment"));
}

}  // namespace
}  // namespace vitrail::train
