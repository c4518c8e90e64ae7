// SPDX-License-Identifier: Apache-2.0
// Depth Anything against transformers': fixtures of tools/golden/depth.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/image/decode.h"
#include "vitrail/ops/layout.h"
#include "vitrail/tasks/depth/depth_model.h"
#include "vitrail/tasks/run.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::error_of;

constexpr int64_t kStep = 3;  // golden maps have every third row and column

fs::path folder_of(const std::string& name) { return testing::fixture("depth/" + name + "/config.json").parent_path(); }

image::Image fixture_image(int index) {
  static const testing::Golden images = testing::read_golden(testing::fixture("depth/images.safetensors"));
  const Tensor& pixels = images["image_" + std::to_string(index)];
  image::Image image = image::make_image(pixels.size(1), pixels.size(0), 3);
  std::memcpy(image.pixels.data(), pixels.raw(), image.pixels.size());
  return image;
}

Tensor thinned(const Tensor& map) {
  const int64_t rows = (map.size(0) + kStep - 1) / kStep, columns = (map.size(1) + kStep - 1) / kStep;
  const Tensor result = Tensor::empty({rows, columns});
  for (int64_t i = 0; i < result.numel(); ++i)
    result.data<float>()[i] = map.data<float>()[i / columns * kStep * map.size(1) + i % columns * kStep];
  return result;
}

std::pair<float, float> range_of(const Tensor& map) {
  const auto [min, max] = std::minmax_element(map.data<float>(), map.data<float>() + map.numel());
  return {*min, *max};
}

struct Ran {
  std::unique_ptr<LoadedModel> model;
  std::unique_ptr<Request> request;
  std::vector<Item> items;
};

Ran run_depth(const fs::path& folder, const Parameters& given = {}) {
  Ran ran{open_model(folder), {}, {}};
  RequestOptions options;
  options.add(given);
  ran.request = find_task("depth", *ran.model)->request(*ran.model, options, {.model = "depth", .render = true});
  options.require_all_taken();
  for (int i = 0; i < 2; ++i) ran.items.push_back({.name = str("image ", i), .photo = fixture_image(i)});
  run(*ran.model, *ran.request, ran.items);
  return ran;
}

class DepthParity : public ::testing::TestWithParam<std::string> {};

TEST_P(DepthParity, MapsEqualTheReference) {
  const testing::Golden golden = testing::read_golden(folder_of(GetParam()) / "golden.safetensors");
  const Ran ran = run_depth(folder_of(GetParam()));
  for (size_t i = 0; i < 2; ++i) {
    const Tensor predicted = golden["predicted_" + std::to_string(i)], depth = golden["depth_" + std::to_string(i)];
    const auto encoding = ran.model->encode(ran.items[i].photo);
    const Tensor& map = static_cast<const DepthEncoding&>(*encoding).map;
    EXPECT_TRUE(testing::close(thinned(map), predicted, 1e-5 * range_of(predicted).second)) << i;
    const Tensor full = ran.request->array(ran.items[i], 0);
    EXPECT_EQ(full.shape(), (Shape{ran.items[i].height, ran.items[i].width}));
    const auto [min, max] = range_of(depth);
    EXPECT_TRUE(testing::close(thinned(full), depth, 1e-5 * (max - min))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DepthParity,
                         ::testing::Values("relative", "metric", "dpt_vit", "dpt_dinov2", "dpt_beit"),
                         [](const auto& name) { return name.param; });

TEST(DepthTask, RunsInTheOtherPrecisions) {
  const testing::Golden golden = testing::read_golden(folder_of("relative") / "golden.safetensors");
  const Tensor want = golden["depth_0"];
  const auto [min, max] = range_of(want);
  for (const auto& [precision, tolerance] :
       {std::pair{kernels::Precision::half, 0.02}, {kernels::Precision::int8, 0.1}}) {
    const auto model = open_model(folder_of("relative"), {.model = {.precision = precision}});
    const auto encoding = model->encode(fixture_image(0));
    const Tensor got = thinned(as_model<DepthModel>(*model).depth(*encoding, encoding->height, encoding->width));
    EXPECT_TRUE(testing::close(got, want, tolerance * (max - min))) << kernels::name_of(precision);
  }
}

TEST(DepthTask, TellsTheRangeAndTheUnit) {
  for (const auto& [name, unit] : {std::pair{"relative", "relative"}, {"metric", "m"}}) {
    const Ran ran = run_depth(folder_of(name), {{"raw", "true"}});
    const json object = json::parse(ran.request->json(ran.items[1]));
    EXPECT_EQ(object["path"], "image 1");
    EXPECT_EQ(object["shape"], (json{97, 163}));
    EXPECT_EQ(object["unit"], unit);
    const Tensor map = ran.request->array(ran.items[1], 0);
    const std::vector<float> values = object["depth"];
    EXPECT_TRUE(std::equal(values.begin(), values.end(), map.data<float>(), map.data<float>() + map.numel()));
    EXPECT_EQ(std::pair(object["min"].get<float>(), object["max"].get<float>()), range_of(map));
  }
  const Ran without = run_depth(folder_of("metric"));
  EXPECT_FALSE(json::parse(without.request->json(without.items[0])).contains("depth"));
}

TEST(DepthTask, RendersTheNearestAndTheFarthestInTheColoursOfTheScale) {
  const Ran gray = run_depth(folder_of("relative"), {{"colors", "gray"}});
  const Tensor map = gray.request->array(gray.items[0], 0);
  const auto [min, max] = range_of(map);
  const image::Image image = gray.request->render(gray.items[0]);
  ASSERT_EQ(image.channels, 1);
  for (int64_t i = 0; i < map.numel(); i += 101)
    ASSERT_EQ(image.pixels[static_cast<size_t>(i)], static_cast<int>((map.data<float>()[i] - min) / (max - min) * 255));
  const Ran colors = run_depth(folder_of("relative"), {{"opacity", "0"}});
  EXPECT_EQ(colors.request->render(colors.items[0]).pixels, colors.items[0].photo.pixels) << "the image itself";
}

TEST(DepthTask, ScalesSeveralImagesAlike) {
  const Ran ran = run_depth(folder_of("relative"), {{"colors", "gray"}, {"common-scale", "true"}});
  int darkest = 255, lightest = 0, images_with_both = 0;
  for (const Item& item : ran.items) {
    const image::Image image = ran.request->render(item);
    const auto [low, high] = std::ranges::minmax(image.pixels);
    darkest = std::min<int>(darkest, low);
    lightest = std::max<int>(lightest, high);
    images_with_both += low == 0 && high == 255;
  }
  EXPECT_EQ(darkest, 0);
  EXPECT_EQ(lightest, 255);
  EXPECT_LT(images_with_both, 2) << "the images differ in their largest value";
}

// Big-endian values behind the filter bytes are not read here: Pillow's way of 16-bit grey clamps at 255.
TEST(DepthTask, WritesMillimetresIn16Bits) {
  const Ran ran = run_depth(folder_of("metric"), {{"colors", "gray16"}});
  const std::vector<uint8_t> file = ran.request->render_png(ran.items[0]);
  EXPECT_EQ(file[24], 16) << "bits";
  EXPECT_EQ(file[25], 0) << "grey";
  const image::Image clamped = image::decode(std::as_bytes(std::span(file)), {.mode = image::ColorMode::grey}, "file");
  EXPECT_EQ(std::ranges::min(clamped.pixels), 255) << "no depth is below 0.255 m";
}

// A folder with the fixture's weights and another configuration.
fs::path changed(const std::string& file, const std::function<void(json&)>& change, const char* name = "metric") {
  const fs::path from = folder_of(name), to = testing::scratch_folder();
  for (const char* name : {"config.json", "preprocessor_config.json", "model.safetensors"})
    fs::copy_file(from / name, to / name);
  json object = json::parse(read_text_file(from / file));
  change(object);
  std::ofstream(to / file) << object;
  return to;
}

std::string config_error(const std::function<void(json&)>& change, const std::string& file = "config.json",
                         const char* name = "metric") {
  const fs::path folder = changed(file, change, name);
  std::string message = error_of([&] { open_model(folder); });
  if (message.starts_with(folder.string())) message.erase(0, folder.string().size() + 1);
  return message;
}

TEST(DepthModel, RefusesOtherConfigurations) {
  const auto expect = [](const char* where, const char* value, const std::function<void(json&)>& change,
                         const std::string& file = "config.json") {
    EXPECT_ERROR(config_error(change, file), file + ": " + where, value);
  };
  expect("backbone_config: model_type", "\"swinv2\"", [](json& c) { c["backbone_config"]["model_type"] = "swinv2"; });
  expect("backbone_config: out_indices", "0", [](json& c) { c["backbone_config"]["out_indices"] = {1, 2, 0}; });
  expect("backbone_config: out_indices", "6", [](json& c) { c["backbone_config"]["out_indices"] = {1, 2, 6}; });
  expect("backbone_config: out_indices", "-1", [](json& c) {
    c["backbone_config"].erase("out_indices");
    c["backbone_config"]["out_features"] = {"stage1", "stage2", "stage6"};
  });
  expect("neck_hidden_sizes", "2", [](json& c) { c["neck_hidden_sizes"] = {8, 8}; });
  expect("neck_hidden_sizes", "0", [](json& c) { c["neck_hidden_sizes"] = {8, 8, 0}; });
  expect("reassemble_hidden_size", "25", [](json& c) { c["reassemble_hidden_size"] = 25; });
  expect("reassemble_factors", "1.5", [](json& c) { c["reassemble_factors"] = {1.5, 1, 1}; });
  expect("fusion_hidden_size", "0", [](json& c) { c["fusion_hidden_size"] = 0; });
  expect("depth_estimation_type", "\"both\"", [](json& c) { c["depth_estimation_type"] = "both"; });
  expect("max_depth", "none", [](json& c) { c.erase("max_depth"); });
  expect("max_depth", "0", [](json& c) { c["max_depth"] = 0; });
  expect("patch_size", "14", [](json& c) { c["patch_size"] = 14; });
  expect("head_in_index", "0", [](json& c) { c["head_in_index"] = 0; });
  const auto processor = [&](const char* key, const json& value, const char* got) {
    expect(
        key, got, [&](json& c) { c[key] = value; }, "preprocessor_config.json");
  };
  processor("image_processor_type", "ViTImageProcessor", "\"ViTImageProcessor\"");
  processor("do_pad", true, "true");
  processor("ensure_multiple_of", 0, "0");
  const std::string shapes = config_error([](json& c) { c["fusion_hidden_size"] = 10; });
  EXPECT_NE(shapes.find("neck.convs.0.weight"), shapes.npos) << shapes;
}

TEST(DepthModel, RefusesOtherConfigurationsOfDpt) {
  const auto expect = [](const char* name, const char* where, const char* value,
                         const std::function<void(json&)>& change) {
    EXPECT_ERROR(config_error(change, "config.json", name), str("config.json: ", where), value);
  };
  expect("dpt_vit", "is_hybrid", "true", [](json& c) { c["is_hybrid"] = true; });
  expect("dpt_vit", "readout_type", "\"none\"", [](json& c) { c["readout_type"] = "none"; });
  expect("dpt_vit", "backbone_out_indices", "4", [](json& c) { c["backbone_out_indices"] = {0, 1, 2, 4}; });
  expect("dpt_vit", "backbone_out_indices", "0, 2, 1, 3", [](json& c) { c["backbone_out_indices"] = {0, 2, 1, 3}; });
  expect("dpt_beit", "backbone_config: model_type", "\"swinv2\"",
         [](json& c) { c["backbone_config"]["model_type"] = "swinv2"; });
  expect("dpt_vit", "model_type", "\"vit\"", [](json& c) { c["model_type"] = "vit"; });
  const std::string zoe = config_error([](json& c) { c["model_type"] = "zoedepth"; }, "config.json", "dpt_vit");
  EXPECT_NE(zoe.find("a ZoeDepth depth estimator, which is not supported"), zoe.npos) << zoe;
}

TEST(DepthModel, RefusesImagesThatAreTooNarrow) {
  const auto model = open_model(folder_of("relative"));
  EXPECT_ERROR(error_of([&] { model->encode(image::make_image(5000, 1, 3)); }), "image",
               "5000×1 pixels, at the input 98×0");
  const auto square = open_model(folder_of("metric"));
  EXPECT_EQ(square->encode(image::make_image(5000, 1, 3))->width, 5000) << "without the aspect ratio there is a size";
}

TEST(DepthModel, OtherTasksAndOptionsAreRefused) {
  const auto model = open_model(folder_of("relative"));
  EXPECT_EQ(find_task("classify", *model), nullptr);
  EXPECT_EQ(first_task(*model).name, "depth");
  EXPECT_ERROR(error_of([] { open_model(folder_of("relative"), {.model = {.labels = {"cat"}}}); }),
               "options of the model", "others");
  // The class for Vision Transformers names the command.
  const std::string refused = error_of([] { vitrail::Model{folder_of("relative").string()}; });
  EXPECT_NE(refused.find("`vitrail depth`"), refused.npos) << refused;
}

TEST(DepthModel, RefusesTheOtherHeadOfDpt) {
  const fs::path folder = changed(
      "config.json", [](json&) {}, "dpt_vit");
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, tensor] : testing::read_golden(folder / "model.safetensors").tensors) {
    if (!name.starts_with("head.head.2.")) tensors.emplace_back(name, tensor);
  }
  weights::write_safetensors(folder / "model.safetensors", tensors);
  EXPECT_ERROR(error_of([&] { open_model(folder); }), (folder / "model.safetensors").string(),
               "another, such as DPTForSemanticSegmentation's");
}

// The processor's sizes, by transformers' get_resize_output_image_size.
TEST(DepthResize, ScalesAsLittleAsPossible) {
  models::DepthConfig config;
  config.backbone.patch_size = {14, 14};
  config.resize = {.size = {518, 518}, .keep_aspect_ratio = true, .multiple = 14};
  using Size = std::array<int64_t, 2>;
  EXPECT_EQ(models::dense_input_size(config, 203, 131), (Size{518, 336}));
  EXPECT_EQ(models::dense_input_size(config, 480, 640), (Size{518, 686}));
  EXPECT_EQ(models::dense_input_size(config, 3000, 4000), (Size{518, 686}));
  config.resize.keep_aspect_ratio = false;
  EXPECT_EQ(models::dense_input_size(config, 480, 640), (Size{518, 518}));
  config.resize = {.size = {35, 49}, .multiple = 14};
  EXPECT_EQ(models::dense_input_size(config, 100, 100), (Size{28, 56})) << "2.5 and 3.5 are rounded to even numbers";
  config.resize.none = true;
  EXPECT_EQ(models::dense_input_size(config, 30, 45), (Size{30, 45}));
  EXPECT_ERROR(error_of([&] { models::dense_input_size(config, 13, 45); }), "image",
               "45×13 pixels, at the input 45×13");
}

// A checkpoint of the authors' names, whose tensors are 0.
weights::Checkpoint authors_checkpoint(int64_t depth) {
  std::vector<std::pair<std::string, Tensor>> tensors{
      {"pretrained.cls_token", Tensor::zeros({1, 1, 64})},
      {"pretrained.pos_embed", Tensor::zeros({1, 26, 64})},
      {"depth_head.scratch.output_conv2.0.weight", Tensor::zeros({6, 4, 3, 3})}};
  for (int64_t i = 0; i < depth; ++i)
    tensors.emplace_back(str("pretrained.blocks.", i, ".norm1.weight"), Tensor::zeros({64}));
  for (const int64_t i : {1, 2, 3, 4})
    tensors.emplace_back(str("depth_head.scratch.layer", i, "_rn.weight"), Tensor::zeros({8, 10 + i, 3, 3}));
  const fs::path file = testing::scratch_folder() / "model.safetensors";
  weights::write_safetensors(file, tensors);
  return weights::Checkpoint::open(file);
}

TEST(AuthorsFile, TellsTheVersionAndTheUnitByItsName) {
  using Layers = std::vector<int64_t>;
  const weights::Checkpoint small = authors_checkpoint(12);
  const models::DepthConfig first = models::depth_config_of_file(small, "x/depth_anything_vits14.pth");
  EXPECT_EQ(first.layers, (Layers{8, 9, 10, 11}));
  EXPECT_FALSE(first.metric);
  EXPECT_EQ(first.backbone.img_size, (std::array<int64_t, 2>{70, 70}));
  EXPECT_EQ(first.neck.hidden_dims, (Layers{11, 12, 13, 14}));
  EXPECT_EQ(first.neck.fusion_dim, 8);
  EXPECT_EQ(first.head_dim, 6);
  EXPECT_EQ(models::depth_config_of_file(small, "depth_anything_v2_vits.pth").layers, (Layers{2, 5, 8, 11}));
  EXPECT_EQ(models::depth_config_of_file(authors_checkpoint(24), "depth_anything_v2_vitl.pth").layers,
            (Layers{4, 11, 17, 23}));
  for (const auto& [dataset, max_depth] : {std::pair{"hypersim", 20.0}, {"vkitti", 80.0}}) {
    const models::DepthConfig metric =
        models::depth_config_of_file(small, str("depth_anything_v2_metric_", dataset, "_vits.pth"));
    EXPECT_TRUE(metric.metric);
    EXPECT_EQ(metric.max_depth, max_depth);
    EXPECT_EQ(metric.layers, (Layers{2, 5, 8, 11}));
  }
  for (const char* name : {"model.pth", "depth_anything_v2_metric_own_vits.pth", "depth_anything_metric_vits.pth"})
    EXPECT_ERROR(error_of([&] { models::depth_config_of_file(small, name); }), name, name);
  EXPECT_ERROR(error_of([] { models::depth_config_of_file(authors_checkpoint(5), "depth_anything_vits14.pth"); }),
               "depth_anything_vits14.pth", "5 of 64");
}

TEST(AuthorsFile, HasTheConfigurationOfTransformersWhenItIsConverted) {
  for (const char* name : {"depth_anything_vitl14.pth", "depth_anything_v2_metric_vkitti_vitl.pth"}) {
    const models::DepthConfig want = models::depth_config_of_file(authors_checkpoint(24), name);
    const models::DepthConfig got = models::read_depth_config(models::write_depth_anything_config(want), "config.json",
                                                              models::write_depth_processor(want), "processor");
    const auto shape_of = [](const models::VisionTransformerConfig& vit) {
      return std::tie(vit.img_size, vit.patch_size, vit.embed_dim, vit.depth, vit.num_heads, vit.mlp_layer,
                      vit.init_values, vit.norm_eps, vit.reg_tokens, vit.num_classes);
    };
    EXPECT_EQ(shape_of(got.backbone), shape_of(want.backbone));
    EXPECT_EQ(std::tie(got.layers, got.final_norm, got.head_dim, got.metric, got.max_depth, got.head_doubles),
              std::tie(want.layers, want.final_norm, want.head_dim, want.metric, want.max_depth, want.head_doubles));
    EXPECT_EQ(
        std::tie(got.neck.dim, got.neck.hidden_dims, got.neck.factors, got.neck.fusion_dim, got.neck.doubles),
        std::tie(want.neck.dim, want.neck.hidden_dims, want.neck.factors, want.neck.fusion_dim, want.neck.doubles));
    EXPECT_EQ(std::tie(got.resize.size, got.resize.keep_aspect_ratio, got.resize.multiple),
              std::tie(want.resize.size, want.resize.keep_aspect_ratio, want.resize.multiple));
    EXPECT_EQ(std::tie(got.preprocessing.mean, got.preprocessing.std, got.preprocessing.interpolation),
              std::tie(want.preprocessing.mean, want.preprocessing.std, want.preprocessing.interpolation));
  }
}

}  // namespace
}  // namespace vitrail::tasks
