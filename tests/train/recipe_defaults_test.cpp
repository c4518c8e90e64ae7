// SPDX-License-Identifier: Apache-2.0
// Every field of a recipe with its default, in the order in which it is written.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/train/training_fixture.h"

namespace vitrail::train {
namespace {

// The text as write_recipe() indents it.
std::string indented(const std::string& json) { return nlohmann::ordered_json::parse(json).dump(2) + "\n"; }

// The fields of data, epochs and those behind them, which all objectives have.
const char* const kDataDefaults = R"({
  "train": "x", "val": "", "test": "", "train_split": "", "val_split": "", "test_split": "", "columns": "", "holdout": null,
  "folds": 0, "fold": 0, "holdout_seed": 0, "retrain": false, "preset": "", "mean": [], "std": [],
  "interpolation": "", "crop_pct": null, "unreadable": "error", "balance": false, "exif": false, "keep_decoded_mb": 1024, "workers": 0,
  "in_flight": 3})";

const char* const kModelDefaults = R"({
  "architecture": "", "init": "", "config": "", "key_map": "", "adapter": "", "positions": "drawn",
  "mimetic": null, "head": "drawn", "freeze": [],
  "linear_probe": false, "activation_checkpointing": false, "model_args": {}})";

const char* const kOtherDefaults = R"(
  "epochs": 4, "batch_size": 128, "accumulate": 1, "precision": "fp32", "seed": 0,
  "optimizer": {"name": "adamw", "lr": 0.001, "weight_decay": 0.05, "beta1": 0.9, "beta2": null, "eps": null,
                "momentum": 0.9, "nesterov": false, "layer_decay": 1.0, "no_decay": []},
  "clip": 0.0, "clip_per_tensor": false,
  "schedule": {"name": "cosine", "final_lr": 0.0, "warmup_epochs": 0.0, "warmup_lr": 0.0, "warmup_prefix": true,
               "decay_epochs": 30.0, "decay_factor": 0.1, "final_weight_decay": null},
  "augment": {"random_resized_crop": null, "padded_crop": null, "flip": "none", "affine": null, "policy": "",
              "policy_share": 1.0, "color_jitter": null, "grayscale": 0.0, "blur": null, "solarize": null,
              "erasing": {"probability": 0.0, "mode": "pixel", "area": [0.02, 0.3333333333333333],
                          "ratio": [0.3, 3.3333333333333335], "count": [1.0, 1.0]},
              "fill": [], "repeats": 1, "plain_epochs": 0.0, "mixup": 0.0, "cutmix": 0.0, "mix_probability": 1.0,
              "switch_probability": 0.5, "mix_mode": "batch", "unmixed_epochs": 0.0},
  "token_drop": null,
  "lora": null,
  "loss": {"name": "cross_entropy", "label_smoothing": 0.0, "bce_threshold": null, "bce_sum": false,
           "class_weighting": "none", "class_weights": [], "distillation": null},
  "ema": null,
  "checkpoint": {"every_steps": 0, "every_minutes": 10.0},
  "explain": {"every": 0},
  "non_finite": "stop", "validate_every": 1, "patience": 0, "log_every": 50)";

TEST(RecipeDefaults, AreThoseOfTheDocumentation) {
  const Recipe recipe = parse_recipe(R"({"model": {}, "data": {"train": "x"}, "epochs": 4})", "r.json");
  EXPECT_EQ(write_recipe(recipe), indented(std::string(R"({"objective": "classify", "model": )") + kModelDefaults +
                                           ", \"data\": " + kDataDefaults + "," + kOtherDefaults + "}"));
}

TEST(RecipeDefaults, OfSegmentationAreThoseOfSegmentAnything) {
  const Recipe recipe =
      parse_recipe(R"({"objective": "segment", "model": {}, "data": {"train": "x"}, "epochs": 4})", "r.json");
  const std::string segment = R"({
    "image_size": 0, "train_encoder": false, "window": 0, "global_every": 3, "decoder_dim": 256, "decoder_depth": 2,
    "decoder_mlp": 2048, "prompts": 4, "rounds": 3, "box_share": 0.5, "focal_weight": 20.0, "dice_weight": 1.0,
    "iou_weight": 1.0, "focal_alpha": 0.25, "focal_gamma": 2.0, "cache": ""})";
  EXPECT_EQ(write_recipe(recipe),
            indented(std::string(R"({"objective": "segment", "model": )") + kModelDefaults +
                     ", \"segment\": " + segment + ", \"data\": " + kDataDefaults + "," + kOtherDefaults + "}"));
}

TEST(RecipeDefaults, OfSemanticSegmentationAreAFrozenBackboneAndALinearHead) {
  const Recipe recipe =
      parse_recipe(R"({"objective": "semantic", "model": {}, "data": {"train": "x"}, "epochs": 4})", "r.json");
  const std::string semantic = R"({"head": "linear", "train_backbone": false, "layers": [], "batch_norm": true,
    "ignored": 255, "reduce_labels": false, "classes": []})";
  EXPECT_EQ(write_recipe(recipe),
            indented(std::string(R"({"objective": "semantic", "model": )") + kModelDefaults +
                     ", \"semantic\": " + semantic + ", \"data\": " + kDataDefaults + "," + kOtherDefaults + "}"));
}

TEST(RecipeDefaults, OfDetectionAreANewDecoderOnAFineTunedBackbone) {
  const Recipe recipe =
      parse_recipe(R"({"objective": "detect", "model": {}, "data": {"train": "x"}, "epochs": 4})", "r.json");
  const std::string detect = R"({"train_backbone": true, "size": 0, "groups": 4, "mosaic": 0.0, "windows": 2,
    "queries": 100, "layers": 2, "width": 256})";
  EXPECT_EQ(write_recipe(recipe),
            indented(std::string(R"({"objective": "detect", "model": )") + kModelDefaults + ", \"detect\": " + detect +
                     ", \"data\": " + kDataDefaults + "," + kOtherDefaults + "}"));
}

// An empty object turns an optional part on, with defaults.
TEST(RecipeDefaults, OfOptionalPartsAreThoseOfTheirReferences) {
  const auto part = [](const std::string& setting, const char* pointer, const std::string& start = "{}") {
    const std::string text = write_recipe(
        parse_recipe(R"({"model": )" + start + R"(, "data": {"train": "x"}, "epochs": 4})", "r.json", {setting}));
    return nlohmann::ordered_json::parse(text).at(nlohmann::ordered_json::json_pointer(pointer)).dump();
  };
  const auto compact = [](const char* json) { return nlohmann::ordered_json::parse(json).dump(); };
  EXPECT_EQ(part("augment.random_resized_crop={}", "/augment/random_resized_crop"),
            compact(R"({"scale": [0.08, 1.0], "ratio": [0.75, 1.3333333333333333], "random_interpolation": false,
                        "interpolation": "bicubic"})"));
  EXPECT_EQ(part("augment.random_resized_crop.random_interpolation=true", "/augment/random_resized_crop"),
            compact(R"({"scale": [0.08, 1.0], "ratio": [0.75, 1.3333333333333333], "random_interpolation": true})"));
  EXPECT_EQ(part("augment.padded_crop={}", "/augment/padded_crop"), compact(R"({"padding": 4, "mode": "constant"})"));
  EXPECT_EQ(part("augment.affine={}", "/augment/affine"),
            compact(R"({"degrees": 0.0, "shift": [0.0, 0.0], "scale": [1.0, 1.0], "interpolation": "bilinear"})"));
  EXPECT_EQ(part("augment.color_jitter={}", "/augment/color_jitter"),
            compact(R"({"brightness": 0.0, "contrast": 0.0, "saturation": 0.0, "hue": 0.0, "probability": 1.0})"));
  EXPECT_EQ(part("token_drop={}", "/token_drop"), compact(R"({"rate": 0.5, "until": 0.6})"));
  EXPECT_EQ(part("loss.distillation.teacher=t", "/loss/distillation"),
            compact(R"({"teacher": "t", "kind": "soft", "alpha": 0.5, "temperature": 3.0, "views": 0,
                        "view_epochs": null, "cache": ""})"));
  EXPECT_EQ(part("ema={}", "/ema"),
            compact(R"({"decay": 0.9999, "warmup": false, "warmup_gamma": 1.0, "warmup_power": 0.6666666666666666,
                        "min_decay": 0.0, "after_step": 0})"));
  EXPECT_EQ(part("model.mimetic={}", "/model/mimetic"),
            compact(R"({"qk_noise": 0.7, "qk_identity": 0.7, "vo_noise": 0.4, "vo_identity": 0.4})"));
  EXPECT_EQ(part("epochs=3", "/model/model_args", R"({"depth": 3, "model_args": {"embed_dim": 8}})"),
            R"({"depth":3,"embed_dim":8})");
}

TEST(RecipeDefaults, OfARecipeWithoutFieldsAreNone) {
  const Recipe recipe;
  EXPECT_EQ(recipe.objective, "classify");
  EXPECT_EQ(recipe.epochs, 0);
  EXPECT_FALSE(recipe.section.has_value());
}

// Every name of a choice, and that it is written as it was read.
TEST(RecipeChoices, AreReadAndWrittenByTheirNames) {
  struct Choice {
    const char* field;
    std::vector<std::string> names;
  };
  const std::vector<Choice> choices{
      {"model.positions", {"drawn", "sincos2d"}},
      {"data.preset", {"", "imagenet", "inception", "cifar10", "mnist"}},
      {"data.interpolation", {"", "nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"}},
      {"data.unreadable", {"error", "skip", "leave_out"}},
      {"precision", {"fp32", "bf16"}},
      {"optimizer.name", {"adamw", "sgd", "lamb", "lion"}},
      {"schedule.name", {"cosine", "linear", "step", "constant"}},
      {"augment.padded_crop.mode", {"constant", "reflect"}},
      {"augment.flip", {"none", "random", "alternate"}},
      {"augment.affine.interpolation", {"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"}},
      {"augment.erasing.mode", {"constant", "colour", "pixel"}},
      {"augment.mix_mode", {"batch", "element"}},
      {"loss.name", {"cross_entropy", "bce"}},
      {"loss.class_weighting", {"none", "inverse_frequency"}},
      {"loss.distillation.kind", {"soft", "hard"}},
      {"non_finite", {"stop", "skip"}}};
  const std::string text = R"({"model": {}, "data": {"train": "x"}, "epochs": 4})";
  for (const auto& [field, names] : choices) {
    std::vector<std::string> settings{
        "", std::string(field).starts_with("loss.dist") ? "loss.distillation.teacher=t" : "seed=0"};
    std::string pointer = "/" + std::string(field);
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    std::string quoted;
    for (const std::string& name : names) {
      settings[0] = std::string(field) + "=" + name;
      const auto json = nlohmann::json::parse(write_recipe(parse_recipe(text, "r.json", settings)));
      EXPECT_EQ(json.at(nlohmann::json::json_pointer(pointer)), name) << field;
      quoted += (quoted.empty() ? "\"" : ", \"") + name + "\"";
    }
    if (std::string(field) == "precision") quoted = R"("fp32", "half", "bf16")";
    settings[0] = std::string(field) + "=other";
    EXPECT_EQ(error_of([&] { parse_recipe(text, "r.json", settings); }),
              str("r.json: invalid recipe:\n  ", field, ": expected one of ", quoted, ", got \"other\""));
  }
  EXPECT_EQ(error_of([&] { parse_recipe(text, "r.json", {"objective=other"}); }),
            "r.json: invalid recipe:\n  objective: expected one of \"classify\", \"probe\", \"segment\", "
            "\"semantic\", \"detect\", \"pretrain\", \"contrastive\", got \"other\"");
}

TEST(RecipeFields, OfRandomResizedCropsAreRefusedOutsideOfTheirLimits) {
  const auto crop = [](const std::string& fields) {
    return parse_recipe(R"({"model": {}, "data": {"train": "x"}, "epochs": 4})", "r.json",
                        {R"(augment={"random_resized_crop": {)" + fields + "}}"});
  };
  EXPECT_NO_THROW(crop(R"("scale": [0, 1], "ratio": [0.01, 100])"));
  const std::string where = "r.json: invalid recipe:\n  augment.random_resized_crop.";
  const std::string scale = where + "scale: expected an array: each a number from 0 to 1, got ";
  const std::string ratio = where + "ratio: expected an array: each a number from 0.01 to 100, got ";
  EXPECT_EQ(error_of([&] { crop(R"("scale": [-0.1, 1])"); }), scale + "[-0.1,1]");
  EXPECT_EQ(error_of([&] { crop(R"("scale": [0.5, 1.1])"); }), scale + "[0.5,1.1]");
  EXPECT_EQ(error_of([&] { crop(R"("ratio": [0.009, 1])"); }), ratio + "[0.009,1]");
  EXPECT_EQ(error_of([&] { crop(R"("ratio": [1, 100.5])"); }), ratio + "[1,100.5]");
  EXPECT_ERROR(error_of([&] { crop(R"("random_interpolation": 1)"); }), where + "random_interpolation", "1");
  EXPECT_ERROR(error_of([&] { crop(R"("random_interpolation": true, "interpolation": "box")"); }),
               where + "interpolation", "an unknown field");
}

TEST(RecipeFields, OfMimeticWeightsAndFoldsHaveLimits) {
  const std::string text = R"({"model": {}, "data": {"train": "x"}, "epochs": 4})";
  const auto refusal = [&](const std::vector<std::string>& settings) {
    const std::string message = error_of([&] { parse_recipe(text, "r.json", settings); });
    return message.substr(std::min(message.size(), message.find("\n  ") + 3));
  };
  for (const char* field : {"qk_noise", "qk_identity", "vo_noise", "vo_identity"}) {
    EXPECT_NO_THROW(parse_recipe(text, "r.json", {str("model.mimetic.", field, "=0")}));
    EXPECT_EQ(refusal({str("model.mimetic.", field, "=-0.5")}),
              str("model.mimetic.", field, ": expected a number of at least 0, got -0.5"));
  }
  EXPECT_ERROR(refusal({"data.folds=1001"}), "data.folds", "1001");
  EXPECT_ERROR(refusal({"data.folds=-1"}), "data.folds", "-1");
  EXPECT_ERROR(refusal({"data.fold=1001"}), "data.fold", "1001");
  EXPECT_ERROR(refusal({"data.fold=-1"}), "data.fold", "-1");
  EXPECT_NO_THROW(parse_recipe(text, "r.json", {"data.folds=1000", "data.fold=1000"}));
  EXPECT_NO_THROW(parse_recipe(text, "r.json", {"data.folds=3", "data.fold=1"}));
  EXPECT_ERROR(refusal({"data.folds=3", "data.fold=0"}), "data.fold", "0");
  EXPECT_ERROR(refusal({"data.folds=3", "data.fold=4"}), "data.fold", "4");
  EXPECT_ERROR(refusal({"data.folds=0", "data.fold=2"}), "data.fold", "2");
  EXPECT_ERROR(refusal({"data.folds=3", "data.fold=1", "data.holdout=0"}), "data.folds", "one");
  EXPECT_ERROR(refusal({"data.folds=3", "data.fold=1", "data.val=v"}), "data.folds", "one");
}

// Settings that are refused together, and the same without one of them, which are not.
TEST(RecipeConsistency, IsCheckedForEachPairOfSettings) {
  struct Case {
    std::vector<std::string> settings;
    const char* problem;  // "": none
  };
  const std::string teacher = R"(loss.distillation={"teacher": "t"})";
  const char* const views =
      "loss.distillation.views: expected augment.repeats 1 and data.unreadable not \"skip\", because a view must "
      "always show the same image, got other settings";
  const char* const view_epochs =
      "loss.distillation.view_epochs: expected views above 0 and neither mixup nor cutmix, got other settings";
  const char* const balance =
      "data.balance: expected false together with loss.distillation.views, because an image may be shown several "
      "times, got true";
  const char* const leave_out =
      "data.unreadable: expected \"error\" or \"skip\" together with mixup or cutmix, got \"leave_out\"";
  const char* const scratch =
      "model.init: expected none together with positions or mimetic, which need a model from scratch, got a model";
  const std::vector<Case> cases{
      {{"augment.padded_crop={}", "augment.random_resized_crop={}"},
       "augment: expected one of padded_crop and random_resized_crop, got both"},
      {{"augment.padded_crop={}"}, ""},
      {{"augment.random_resized_crop={}"}, ""},
      {{"loss.distillation={}"}, "loss.distillation.teacher: expected a model, got nothing"},
      {{teacher}, ""},
      {{"model.linear_probe=true"},
       "model.linear_probe: expected a model to start from in model.init or after -m, got none"},
      {{"model.linear_probe=true", "model.init=m"}, ""},
      {{"model.head=probe"}, "model.head: expected a model to start from in model.init or after -m, got none"},
      {{"model.head=probe", "model.init=m"}, ""},
      {{"model.init=m", "model.positions=sincos2d"}, scratch},
      {{"model.init=m", "model.mimetic={}"}, scratch},
      {{"model.mimetic={}", "model.positions=sincos2d"}, ""},
      {{teacher, "loss.distillation.views=1", "augment.repeats=2"}, views},
      {{teacher, "loss.distillation.views=1", "data.unreadable=skip"}, views},
      {{teacher, "loss.distillation.views=0", "augment.repeats=2", "data.unreadable=skip"}, ""},
      {{teacher, "loss.distillation.views=1", "data.unreadable=leave_out"}, ""},
      {{teacher, "loss.distillation.view_epochs=2"}, view_epochs},
      {{teacher, "loss.distillation.views=1", "loss.distillation.view_epochs=2", "augment.mixup=0.1"}, view_epochs},
      {{teacher, "loss.distillation.views=1", "loss.distillation.view_epochs=2", "augment.cutmix=0.1"}, view_epochs},
      {{teacher, "loss.distillation.views=1", "loss.distillation.view_epochs=2"}, ""},
      {{teacher, "loss.distillation.views=1", "augment.mixup=0.1"}, ""},
      {{teacher, "loss.distillation.views=1", "data.balance=true"}, balance},
      {{teacher, "data.balance=true"}, ""},
      {{"data.unreadable=leave_out", "augment.mixup=0.1"}, leave_out},
      {{"data.unreadable=leave_out", "augment.cutmix=0.1"}, leave_out},
      {{"data.unreadable=skip", "augment.cutmix=0.1"}, ""},
      {{"data.train_split=a", "data.val_split=a", "data.val=x"},
       "data.val_split: expected another split than data.train_split, got the same"},
      {{"data.train_split=a", "data.val_split=a", "data.val=y"}, ""},
      {{"loss.class_weights=[1,2]"}, ""},
      {{"loss.class_weights=[1,2]", "loss.class_weighting=inverse_frequency"},
       "loss.class_weighting: expected \"none\" together with class_weights, got another one"},
      {{"loss.class_weights=[1,2]", "loss.name=bce"},
       "loss.class_weights: expected loss.name \"cross_entropy\", got \"bce\""},
      {{"loss.class_weights=[1,2]", teacher}, "loss.class_weights: expected no distillation, got a teacher"},
      {{"loss.class_weighting=inverse_frequency", "data.balance=true"},
       "loss.class_weighting: expected data.balance false, which weights the classes too, got true"},
      {{"loss.name=bce", "data.balance=true"}, ""}};
  const std::string text = R"({"model": {}, "data": {"train": "x"}, "epochs": 4})";
  for (const auto& [settings, problem] : cases) {
    const std::string shown = ::testing::PrintToString(settings);
    if (*problem == '\0') {
      EXPECT_NO_THROW(parse_recipe(text, "r.json", settings)) << shown;
    } else {
      std::vector<std::string> given = settings;
      EXPECT_EQ(error_of([&] { parse_recipe(text, "r.json", given); }), str("r.json: invalid recipe:\n  ", problem))
          << shown;
    }
  }
}

TEST(RecipeConsistency, OfAProbeAndOfWhatIsMissing) {
  EXPECT_EQ(error_of([] { parse_recipe(R"({"model": {}, "data": {}})", "r.json"); }),
            "r.json: invalid recipe:\n  epochs: expected an integer of at least 1, got nothing\n"
            "  data.train: expected the path of a dataset, here or after --data, got nothing");
  const std::string probe = R"({"objective": "probe", "model": {}, "data": {"train": "x"}})";
  EXPECT_EQ(error_of([&] { parse_recipe(probe, "r.json"); }),
            "r.json: invalid recipe:\n  model.init: expected the pretrained model of the probe, here or after -m, got "
            "none");
  EXPECT_EQ(error_of([&] {
              parse_recipe(probe, "r.json", {"model.init=m", "loss.class_weights=[1,2]"});
            }),
            "r.json: invalid recipe:\n  loss.class_weights: expected no weights for a probe, got some");
  EXPECT_EQ(parse_recipe(probe, "r.json", {"model.init=m", "epochs=3"}).epochs, 3);
}

TEST(RecipeModel, MixesItsFieldsWithThoseOfTheArchitecture) {
  const auto problems = [](const std::string& model) {
    const std::string message = error_of(
        [&] { parse_recipe(R"({"model": )" + model + R"(, "data": {"train": "x"}, "epochs": 4})", "r.json"); });
    return message.substr(message.find("\n  ") + 3);
  };
  EXPECT_ERROR(problems("3"), "model", "3");
  EXPECT_ERROR(problems("[\"vit\"]"), "model", "[\"vit\"]");
  EXPECT_ERROR(problems(R"({"model_args": 3})"), "model.model_args", "3");
  EXPECT_ERROR(problems(R"({"freeze": "all"})"), "model.freeze", "\"all\"");
  const ModelRecipe vit = parse_recipe(R"({"model": "vit", "data": {"train": "x"}, "epochs": 4})", "r.json").model;
  EXPECT_EQ(vit.architecture, "") << "the defaults of a Vision Transformer";
  EXPECT_EQ(vit.model_args, "{}");
  const ModelRecipe both = parse_recipe(R"({"model": {"depth": 3, "freeze": ["a"], "model_args": {"depth": 5}},
                                            "data": {"train": "x"}, "epochs": 4})",
                                        "r.json")
                               .model;
  EXPECT_EQ(both.model_args, "{\"depth\":5}");
  EXPECT_EQ(both.freeze, (std::vector<std::string>{"a"}));
}

TEST(RecipeShortForms, AreExpandedInTheFileAndInSettings) {
  const std::string text = R"({"model": "cifar_vit_d192", "data": {"train": "x"}, "epochs": 4, "optimizer": "lion",
                               "schedule": "step", "loss": "bce", "ema": 0.5})";
  const Recipe file = parse_recipe(text, "r.json");
  EXPECT_EQ(file.model.architecture, "cifar_vit_d192");
  EXPECT_EQ(file.optimizer.kind, "lion");
  EXPECT_EQ(file.schedule.name, "step");
  EXPECT_EQ(file.loss.name, "bce");
  EXPECT_EQ(file.ema->decay, 0.5);
  const Recipe changed = parse_recipe(
      text, "r.json", {"optimizer=sgd", "schedule=linear", "loss=cross_entropy", "ema=0.25", "model=vit", "clip=2"});
  EXPECT_EQ(changed.model.architecture, "");
  EXPECT_EQ(changed.optimizer.kind, "sgd");
  EXPECT_EQ(changed.schedule.name, "linear");
  EXPECT_EQ(changed.loss.name, "cross_entropy");
  EXPECT_EQ(changed.ema->decay, 0.25);
  EXPECT_EQ(changed.clip, 2);
  EXPECT_FALSE(parse_recipe(text, "r.json", {"ema=null"}).ema.has_value());
  EXPECT_EQ(parse_recipe(text, "r.json", {"optimizer.lr=0.5"}).optimizer.kind, "lion") << "the rest stays";
}

}  // namespace
}  // namespace vitrail::train
