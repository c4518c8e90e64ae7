// SPDX-License-Identifier: Apache-2.0
// EoMT against transformers': fixtures of tools/golden/eomt.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/tasks/label_map/eomt_model.h"
#include "vitrail/tasks/run.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::error_of;

constexpr int8_t kUnclear = -2;  // the golden label where two are nearly as good

fs::path eomt_folder(const std::string& name) {
  return testing::fixture("eomt/" + name + "/config.json").parent_path();
}

testing::Golden eomt_golden(const std::string& name) {
  return testing::read_golden(eomt_folder(name) / "golden.safetensors");
}

image::Image eomt_image(int index) {
  static const testing::Golden images = testing::read_golden(testing::fixture("depth/images.safetensors"));
  const Tensor& pixels = images["image_" + std::to_string(index)];
  image::Image image = image::make_image(pixels.size(1), pixels.size(0), 3);
  std::memcpy(image.pixels.data(), pixels.raw(), image.pixels.size());
  return image;
}

double largest(const Tensor& tensor) {
  double result = 0;
  for (const float value : std::span(tensor.data<float>(), static_cast<size_t>(tensor.numel())))
    result = std::max(result, std::abs(static_cast<double>(value)));
  return result;
}

// The crops' outputs, stacked as those of the reference.
Tensor stacked(const EomtEncoding& encoding, Tensor analysis::QueryMasks::*part) {
  const Tensor& first = encoding.crops[0].*part;
  Shape shape = first.unsqueeze(0).shape();
  shape[0] = static_cast<int64_t>(encoding.crops.size());
  const Tensor result = Tensor::empty(shape);
  for (int64_t i = 0; i < shape[0]; ++i) result.select(0, i).copy_(encoding.crops[static_cast<size_t>(i)].*part);
  return result;
}

// How many labels differ from a golden map, whose ids are smaller by `shift`, where that is clear.
int64_t differences(const std::vector<int32_t>& labels, const Tensor& golden, int32_t shift) {
  EXPECT_EQ(static_cast<int64_t>(labels.size()), golden.numel());
  int64_t count = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int8_t want = golden.data<int8_t>()[i];
    count += want != kUnclear && labels[i] != want + shift;
  }
  return count;
}

// The golden segments that have pixels, as later ones may hide them.
void expect_segments(const std::vector<analysis::QuerySegment>& segments, const json& golden, const Tensor& map) {
  const std::span ids(map.data<int8_t>(), static_cast<size_t>(map.numel()));
  auto segment = segments.begin();
  for (const json& want : golden) {
    if (std::ranges::find(ids, want["id"].get<int>()) == ids.end()) continue;
    ASSERT_NE(segment, segments.end());
    EXPECT_EQ(segment->id, want["id"].get<int>() + 1);
    EXPECT_EQ(segment->label, want["label_id"]);
    EXPECT_NEAR(segment->score, want["score"].get<double>(), 1e-4);
    ++segment;
  }
  EXPECT_EQ(segment, segments.end());
}

class EomtParity : public ::testing::TestWithParam<std::string> {};

TEST_P(EomtParity, OutputsAndMapsEqualTheReference) {
  const testing::Golden golden = eomt_golden(GetParam());
  const json about = json::parse(golden.config);
  const EomtModel model(eomt_folder(GetParam()), {});
  for (int i = 0; i < 2; ++i) {
    const auto encoded = model.encode(eomt_image(i));
    const auto& encoding = static_cast<const EomtEncoding&>(*encoded);
    const Tensor &classes = golden[str("classes_", i)], &masks = golden[str("masks_", i)];
    EXPECT_TRUE(testing::close(stacked(encoding, &analysis::QueryMasks::classes), classes, 1e-5 * largest(classes)));
    EXPECT_TRUE(testing::close(stacked(encoding, &analysis::QueryMasks::masks), masks, 1e-5 * largest(masks)));
    const analysis::QueryPlacement placement{
        model.eomt_config().side(), encoding.placement.resized, {encoding.height, encoding.width}};
    if (golden.has(str("semantic_", i))) {
      const LabelMap map = model.label_map(encoding, LabelMapTask::semantic, encoding.height, encoding.width, {});
      EXPECT_EQ(differences(map.ids, golden[str("semantic_", i)], 1), 0);
      continue;
    }
    const json &options = about["panoptic"], &segments = about["segments"][static_cast<size_t>(i)];
    const auto panoptic = analysis::panoptic_segments(encoding.crops[0], placement,
                                                      {.threshold = options["threshold"],
                                                       .mask_threshold = options["mask_threshold"],
                                                       .overlap_threshold = options["overlap_mask_area_threshold"],
                                                       .stuff_classes = about["stuff"]});
    EXPECT_EQ(differences(panoptic.ids, golden[str("panoptic_", i)], 1), 0);
    expect_segments(panoptic.segments, segments["panoptic"], golden[str("panoptic_", i)]);
    const auto instance =
        analysis::instance_segments(encoding.crops[0], placement, about["instance"]["threshold"].get<float>());
    EXPECT_EQ(differences(instance.ids, golden[str("instance_", i)], 1), 0);
    expect_segments(instance.segments, segments["instance"], golden[str("instance_", i)]);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, EomtParity,
                         ::testing::Values("semantic", "panoptic", "dinov3_semantic", "dinov3_panoptic"),
                         [](const auto& name) { return name.param; });

TEST(EomtModel, RunsInTheOtherPrecisions) {
  const Tensor want = eomt_golden("dinov3_semantic")["masks_0"];
  for (const auto& [precision, tolerance] :
       {std::pair{kernels::Precision::half, 0.02}, {kernels::Precision::int8, 0.2}}) {
    const EomtModel model(eomt_folder("dinov3_semantic"), {.model = {.precision = precision}});
    const auto encoding = model.encode(eomt_image(0));
    const Tensor got = stacked(static_cast<const EomtEncoding&>(*encoding), &analysis::QueryMasks::masks);
    EXPECT_TRUE(testing::close(got, want, tolerance * largest(want))) << kernels::name_of(precision);
    EXPECT_FALSE(testing::close(got, want, 1e-5 * largest(want))) << "it is another precision";
  }
}

TEST(EomtModel, PaddingIsNoPartOfASemanticMap) {
  const EomtModel model(eomt_folder("panoptic"), {});
  using enum LabelMapTask;
  EXPECT_EQ(model.label_map_tasks(), (std::vector{panoptic, instance, semantic}));
  EXPECT_EQ(EomtModel(eomt_folder("semantic"), {}).label_map_tasks(), std::vector{semantic});
  const auto encoded = model.encode(eomt_image(0));
  const auto& encoding = static_cast<const EomtEncoding&>(*encoded);
  const auto [rows, columns] = encoding.placement.resized;
  const int64_t side = model.eomt_config().side();
  ASSERT_EQ(rows, side);
  ASSERT_LT(columns, side);
  const LabelMap inside = model.label_map(encoding, semantic, rows, columns, {});
  const std::vector<int32_t> whole =
      analysis::semantic_labels(encoding.crops, {0}, true, {side, {side, side}, {side, side}});
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < columns; ++x)
      ASSERT_EQ(inside.ids[static_cast<size_t>(y * columns + x)], whole[static_cast<size_t>(y * side + x)] + 1);
  }
}

// What the task's request of an image gives.
LabelMap requested_map(const Parameters& given) {
  const auto model = open_model(eomt_folder("dinov3_panoptic"));
  RequestOptions options;
  options.add(given);
  const auto request = find_task("segment", *model)->request(*model, options, {.model = "m"});
  options.require_all_taken();
  std::vector<Item> items{{.name = "image", .photo = eomt_image(0)}};
  run(*model, *request, items);
  return std::any_cast<LabelMap>(items[0].value);
}

TEST(EomtModel, ThresholdsKeepMoreOrFewerSegments) {
  const testing::Golden golden = eomt_golden("dinov3_panoptic");
  const LabelMap instance = requested_map({{"task", "instance"}, {"score-threshold", "0.5"}});
  EXPECT_EQ(differences(instance.ids, golden["instance_0"], 1), 0);
  EXPECT_LT(requested_map({{"task", "instance"}}).segments.size(), instance.segments.size());
  const auto panoptic = [](const char* score, const char* overlap) {
    return requested_map({{"score-threshold", score}, {"overlap-threshold", overlap}}).segments.size();
  };
  EXPECT_EQ(panoptic("0.8", "0.8"), requested_map({}).segments.size());
  EXPECT_GT(panoptic("0.8", "0"), panoptic("0.8", "0.8"));
  EXPECT_GT(panoptic("0.8", "0.8"), panoptic("0.8", "1"));
  EXPECT_GT(panoptic("0.2", "0"), panoptic("0.8", "0"));
  EXPECT_ERROR(error_of([] {
                 requested_map({{"task", "semantic"}, {"score-threshold", "0.5"}});
               }),
               "score-threshold", "a semantic one");
  EXPECT_ERROR(error_of([] {
                 requested_map({{"task", "instance"}, {"overlap-threshold", "0.5"}});
               }),
               "overlap-threshold", "a map that is instance");
}

// A folder with a fixture's weights and another configuration.
fs::path changed_eomt(const std::string& file, const std::function<void(json&)>& change, const char* name) {
  const fs::path from = eomt_folder(name), to = testing::scratch_folder();
  for (const char* each : {"config.json", "preprocessor_config.json", "model.safetensors"})
    fs::copy_file(from / each, to / each);
  json object = json::parse(read_text_file(from / file));
  change(object);
  std::ofstream(to / file) << object;
  return to;
}

TEST(EomtModel, RefusesOtherConfigurations) {
  const auto expect = [](const char* file, const char* where, const char* value,
                         const std::function<void(json&)>& change, const char* name = "panoptic") {
    const fs::path folder = changed_eomt(file, change, name);
    std::string message = error_of([&] { EomtModel(folder, {}); });
    if (message.starts_with(folder.string())) message.erase(0, folder.string().size() + 1);
    EXPECT_ERROR(message, str(file, ": ", where), value);
  };
  const char *model = "config.json", *processor = "preprocessor_config.json";
  expect(model, "model_type", "\"vit\"", [](json& c) { c["model_type"] = "vit"; });
  expect(model, "image_size", "64×72", [](json& c) { c["image_size"] = {64, 72}; });
  expect(model, "num_blocks", "5", [](json& c) { c["num_blocks"] = 5; });
  expect(model, "num_queries", "0", [](json& c) { c["num_queries"] = 0; });
  expect(model, "num_upscale_blocks", "7", [](json& c) { c["num_upscale_blocks"] = 7; });
  expect(
      model, "rope_parameters: rope_type", "\"yarn\"", [](json& c) { c["rope_parameters"]["rope_type"] = "yarn"; },
      "dinov3_panoptic");
  expect(processor, "image_processor_type", "\"ViTImageProcessor\"",
         [](json& c) { c["image_processor_type"] = "ViTImageProcessor"; });
  expect(processor, "size", R"({"longest_edge":72,"shortest_edge":64})",
         [](json& c) { c["size"]["shortest_edge"] = 64; });
  expect(processor, "size", R"({"longest_edge":72,"shortest_edge":72})", [](json& c) { c["do_split_image"] = true; });
}

// A folder with a fixture's weights, changed.
fs::path with_weights(const char* name,
                      const std::function<void(std::vector<std::pair<std::string, Tensor>>&)>& change) {
  const fs::path folder = changed_eomt(
      "config.json", [](json&) {}, name);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [key, tensor] : testing::read_golden(folder / "model.safetensors").tensors)
    tensors.emplace_back(key, tensor);
  change(tensors);
  weights::write_safetensors(folder / "model.safetensors", tensors);
  return folder;
}

TEST(EomtModel, RefusesRandomAttentionMasks) {
  const auto with_probabilities = [](const Tensor& values) {
    return with_weights("panoptic", [&](auto& tensors) {
      for (auto& [key, tensor] : tensors) {
        if (key == "attn_mask_probs") tensor = values;
      }
    });
  };
  const fs::path random = with_probabilities(Tensor::from<float>({3}, {0, 0.25F, 1}));
  EXPECT_ERROR(error_of([&] { EomtModel(random, {}); }), (random / "model.safetensors").string() + ": attn_mask_probs",
               "0.25");
  const fs::path few = with_probabilities(Tensor::from<float>({2}, {0, 1}));
  EXPECT_ERROR(error_of([&] { EomtModel(few, {}); }), (few / "model.safetensors").string() + ": attn_mask_probs",
               "shape [2]");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (text.starts_with(from)) text.replace(0, from.size(), to);
  return text;
}

// The names of the authors' code, for a model on DINOv2 without SwiGLU.
TEST(EomtModel, ReadsTheAuthorsNames) {
  const fs::path folder = with_weights("semantic", [](auto& tensors) {
    std::map<std::string, Tensor> given(tensors.begin(), tensors.end());
    tensors.clear();
    const std::string backbone = "network.encoder.backbone.";
    for (const auto& [key, tensor] : given) {
      std::string name = key;
      if (key.starts_with("layers.")) {
        const size_t dot = key.find('.', 7);
        const std::string block = backbone + "blocks." + key.substr(7, dot - 6);
        const std::string rest = key.substr(dot + 1);
        if (rest.starts_with("attention.")) {
          if (!rest.starts_with("attention.q_proj.") && !rest.starts_with("attention.out_proj.")) continue;
          const std::string kind = rest.substr(rest.rfind('.') + 1);
          if (rest.starts_with("attention.out_proj.")) {
            tensors.emplace_back(block + "attn.proj." + kind, tensor);
            continue;
          }
          Shape shape = tensor.shape();
          shape[0] *= 3;
          const Tensor joined = Tensor::empty(shape);
          for (const auto& [i, part] : {std::pair{0, "q"}, {1, "k"}, {2, "v"}}) {
            joined.narrow(0, i * tensor.size(0), tensor.size(0))
                .copy_(given.at(key.substr(0, dot + 1) + "attention." + part + "_proj." + kind));
          }
          tensors.emplace_back(block + "attn.qkv." + kind, joined);
          continue;
        }
        name = block + rest;
        for (const char* i : {"1", "2"}) {
          if (rest == str("layer_scale", i, ".lambda1")) name = block + "ls" + i + ".gamma";
        }
      }
      if (key == "embeddings.position_embeddings.weight") {
        tensors.emplace_back(backbone + "pos_embed", tensor.unsqueeze(0));
        continue;
      }
      name = replaced(name, "embeddings.cls_token", backbone + "cls_token");
      name = replaced(name, "embeddings.register_tokens", backbone + "reg_token");
      name = replaced(name, "embeddings.patch_embeddings.projection", backbone + "patch_embed.proj");
      name = replaced(name, "layernorm.", backbone + "norm.");
      name = replaced(name, "query.", "network.q.");
      name = replaced(name, "class_predictor.", "network.class_head.");
      for (const auto& [i, layer] : {std::pair{"0", "fc1"}, {"2", "fc2"}, {"4", "fc3"}})
        name = replaced(name, str("mask_head.", layer), str("network.mask_head.", i));
      name = replaced(name, "upscale_block.block.", "network.upscale.");
      if (const size_t at = name.find(".layernorm2d."); at != name.npos) name.replace(at, 13, ".norm.");
      name = replaced(name, "attn_mask_probs", "network.attn_mask_probs");
      tensors.emplace_back(name, tensor);
    }
    tensors.emplace_back("network.encoder.pixel_mean", Tensor::zeros({1, 3, 1, 1}));
  });
  const auto encoding = EomtModel(folder, {}).encode(eomt_image(0));
  const Tensor want = eomt_golden("semantic")["masks_0"];
  EXPECT_TRUE(testing::close(stacked(static_cast<const EomtEncoding&>(*encoding), &analysis::QueryMasks::masks), want,
                             1e-5 * largest(want)));
  fs::remove(folder / "config.json");
  EXPECT_ERROR(error_of([&] { EomtModel(folder, {}); }), (folder / "model.safetensors").string(), "none");
}

// transformers' get_size_with_aspect_ratio, get_resize_output_image_size and EomtImageProcessorPil._split_image.
TEST(EomtPlacement, CropsAndPadsAsTheProcessor) {
  models::EomtConfig config;
  config.backbone.img_size = {640, 640};
  using Size = std::array<int64_t, 2>;
  const auto padded = [&](int64_t height, int64_t width) { return place_for_eomt(config, height, width).resized; };
  EXPECT_EQ(padded(480, 640), (Size{480, 640}));
  EXPECT_EQ(padded(1333, 2000), (Size{427, 640}));
  EXPECT_EQ(padded(2000, 1333), (Size{640, 427}));
  EXPECT_EQ(padded(100, 100), (Size{640, 640}));
  EXPECT_EQ(padded(10, 638), (Size{10, 638})) << "a shorter side that is right already is kept";
  EXPECT_EQ(padded(10, 642), (Size{10, 640}));
  EXPECT_ERROR(error_of([&] { padded(1, 5000); }), "image", "5000×1 pixels");
  config.split = true;
  config.backbone.img_size = {512, 512};
  const auto wide = place_for_eomt(config, 400, 1100);
  EXPECT_EQ(wide.resized, (Size{512, 1408}));
  EXPECT_EQ(wide.starts, (std::vector<int64_t>{0, 448, 896}));
  EXPECT_FALSE(wide.vertical);
  const auto tall = place_for_eomt(config, 1365, 1024);
  EXPECT_EQ(tall.resized, (Size{682, 512}));
  EXPECT_EQ(tall.starts, (std::vector<int64_t>{0, 170}));
  EXPECT_TRUE(tall.vertical);
  EXPECT_EQ(place_for_eomt(config, 512, 512).starts, std::vector<int64_t>{0});
  config.backbone.img_size = {24, 24};
  EXPECT_EQ(place_for_eomt(config, 24, 275).starts.back(), 275 - 24) << "3007.9999 / 12 is not truncated";
  EXPECT_ERROR(error_of([&] { place_for_eomt(config, 1, 5000); }), "image", "5000×1 pixels");
}

}  // namespace
}  // namespace vitrail::tasks
