// SPDX-License-Identifier: Apache-2.0
// ViTPose against transformers', and the task pose: fixtures of tools/golden/vitpose.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/read_file.h"
#include "vitrail/tasks/pose/pose_model.h"
#include "vitrail/tasks/run.h"
#include "vitrail/weights/hub_layout.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::error_of;

fs::path pose_fixture(const std::string& name) {
  return testing::fixture("vitpose/" + name + "/config.json").parent_path();
}

// The values of `generated` in tools/golden/vitpose.py.
Tensor generated(const Shape& shape) {
  const Tensor values = Tensor::empty(shape);
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double noise = static_cast<double>(static_cast<uint32_t>(i * 2654435761)) / 4294967296.0 - 0.5;
    values.data<float>()[i] = static_cast<float>(3 * noise / std::sqrt(static_cast<double>(shape[0])));
  }
  return values.to(DType::f16);
}

// The folder of a fixture with all its weights.
fs::path pose_folder(const std::string& name) {
  const fs::path folder = pose_fixture(name);
  if (name != "classic") return folder;
  static const fs::path complete = [&] {
    const fs::path to = testing::scratch_folder();
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const auto& [key, tensor] : testing::read_golden(folder / "model.safetensors").tensors)
      tensors.emplace_back(key, tensor);
    tensors.emplace_back("head.deconv1.weight", generated({24, 256, 4, 4}));
    tensors.emplace_back("head.deconv2.weight", generated({256, 256, 4, 4}));
    weights::write_hub_folder(to, read_text_file(folder / "config.json"), tensors,
                              read_text_file(folder / "preprocessor_config.json"));
    return to;
  }();
  return complete;
}

testing::Golden pose_golden(const std::string& name) {
  return testing::read_golden(pose_fixture(name) / "golden.safetensors");
}

image::Image pose_image(int index) {
  static const testing::Golden images = testing::read_golden(testing::fixture("depth/images.safetensors"));
  const Tensor& pixels = images["image_" + std::to_string(index)];
  image::Image image = image::make_image(pixels.size(1), pixels.size(0), 3);
  std::memcpy(image.pixels.data(), pixels.raw(), image.pixels.size());
  return image;
}

// The boxes of the fixture, with their images.
std::vector<std::pair<int, PersonBox>> fixture_boxes() {
  const PersonBoxes file(read_text_file(testing::fixture("vitpose/boxes.json")));
  std::vector<std::pair<int, PersonBox>> boxes;
  for (const int i : {0, 1}) {
    for (const PersonBox& box : file.of(str("photos/", i, ".png"))) boxes.emplace_back(i, box);
  }
  return boxes;
}

// want: [persons, K, 4]: x, y, score, whether it is stable.
void expect_keypoints(const PoseModel& model, const Tensor& want, bool flip_test) {
  const auto boxes = fixture_boxes();
  const float* at = want.data<float>();
  ASSERT_EQ(want.shape(), (Shape{std::ssize(boxes), 5, 4}));
  int stable = 0;
  for (const auto& [image, box] : boxes) {
    for (const Keypoint& keypoint : model.pose(pose_image(image), box, flip_test).keypoints) {
      EXPECT_NEAR(keypoint.score, at[2], 1e-3) << "a level of a pixel's rounding";
      if (at[3] > 0) {
        EXPECT_NEAR(keypoint.x, at[0], 0.02) << box.box[0];
        EXPECT_NEAR(keypoint.y, at[1], 0.02) << box.box[0];
        ++stable;
      }
      at += 4;
    }
  }
  EXPECT_GE(stable, 15);
}

class VitPoseParity : public ::testing::TestWithParam<std::string> {};

TEST_P(VitPoseParity, HeatMapsAndKeypointsEqualTheReference) {
  const testing::Golden golden = pose_golden(GetParam());
  const PoseModel model(pose_folder(GetParam()), {});
  const Tensor& crops = golden["crops"];
  const auto boxes = fixture_boxes();
  int64_t different = 0;
  for (int64_t i = 0; i < crops.size(0); ++i) {
    const auto& [index, box] = boxes[static_cast<size_t>(i)];
    const image::Image crop = cropped(pose_image(index), crop_region(box.box, {64, 48}), {64, 48});
    const auto* want = reinterpret_cast<const uint8_t*>(crops.raw()) + i * 64 * 48 * 3;
    for (size_t k = 0; k < crop.pixels.size(); ++k) {
      EXPECT_LE(std::abs(crop.pixels[k] - want[k]), 1);
      different += crop.pixels[k] != want[k];
    }
  }
  EXPECT_LE(different, crops.numel() / 1000);
  expect_keypoints(model, golden["keypoints_0"], false);
  expect_keypoints(model, golden["flipped"], true);
}

TEST_P(VitPoseParity, HeatMapsOfACropEqualTheReference) {
  const testing::Golden golden = pose_golden(GetParam());
  const PoseModel model(pose_folder(GetParam()), {});
  const Tensor &crops = golden["crops"], &maps = golden["heatmaps"];
  for (int64_t i = 0; i < crops.size(0); ++i) {
    image::Image crop = image::make_image(48, 64, 3);
    std::memcpy(crop.pixels.data(), crops.raw() + i * 64 * 48 * 3, crop.pixels.size());
    EXPECT_TRUE(testing::close(model.heat_maps(crop), maps.select(0, i), 1e-4));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, VitPoseParity, ::testing::Values("simple", "classic", "experts"),
                         [](const auto& name) { return name.param; });

TEST(VitPose, ExpertsAreThoseOfADataset) {
  const testing::Golden golden = pose_golden("experts");
  const PoseModel model(pose_folder("experts"), {});
  for (const int64_t dataset : {1, 2})
    expect_keypoints(model.of_dataset(dataset), golden[str("keypoints_", dataset)], false);
  EXPECT_EQ(&model.of_dataset(2), &model.of_dataset(2)) << "it is read once";
  EXPECT_EQ(&model.of_dataset(0), &model);
  EXPECT_ERROR(error_of([&] { model.of_dataset(3); }), "dataset", "3");
  EXPECT_ERROR(error_of([&] { PoseModel(pose_folder("simple"), {}).of_dataset(1); }), "dataset", "1");
}

TEST(VitPose, RunsInTheOtherPrecisions) {
  const auto maps = [](kernels::Precision precision) {
    return PoseModel(pose_folder("classic"), {.model = {.precision = precision}}).whole_heat_maps(pose_image(0));
  };
  const Tensor want = maps(kernels::Precision::fp32);
  for (const auto& [precision, error] : {std::pair{kernels::Precision::half, 0.01}, {kernels::Precision::int8, 0.1}}) {
    EXPECT_LT(testing::relative_error(maps(precision), want), error) << kernels::name_of(precision);
    EXPECT_GT(testing::relative_error(maps(precision), want), 1e-5) << "it is another precision";
  }
}

// The names of transformers → those of the authors' code.
std::string authors_name(std::string name) {
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"head.deconv1", "keypoint_head.deconv_layers.0"},
                                                        {"head.batchnorm1", "keypoint_head.deconv_layers.1"},
                                                        {"head.deconv2", "keypoint_head.deconv_layers.3"},
                                                        {"head.batchnorm2", "keypoint_head.deconv_layers.4"},
                                                        {"head.conv", "keypoint_head.final_layer"},
                                                        {"encoder.layer", "blocks"},
                                                        {"layernorm_before", "norm1"},
                                                        {"layernorm_after", "norm2"},
                                                        {"backbone.layernorm", "backbone.last_norm"},
                                                        {"embeddings.patch_embeddings.projection", "patch_embed.proj"},
                                                        {"embeddings.position_embeddings", "pos_embed"},
                                                        {"attention.output.dense", "attn.proj"},
                                                        {"attention.attention.query", "attn.qkv"}}) {
    const size_t at = name.find(from);
    if (at != name.npos) name.replace(at, from.size(), to);
  }
  return name;
}

// A file with the authors' names and sizes, and the same weights in a folder of transformers.
struct SameWeights {
  fs::path folder = testing::scratch_folder(), file = testing::scratch_folder() / "vitpose+.pth";
};

SameWeights same_weights(int64_t experts) {
  constexpr int64_t kDim = 384, kHidden = 4 * kDim, kPart = 96;
  std::vector<std::pair<std::string, Tensor>> folder, file;
  uint64_t seed = 0;
  const auto drawn = [&](const Shape& shape, double scale) {
    const Tensor values = Tensor::randn(shape, ++seed);
    for (int64_t i = 0; i < values.numel(); ++i) values.data<float>()[i] *= static_cast<float>(scale);
    return values;
  };
  const auto add = [&](const std::string& name, const Tensor& values) {
    folder.emplace_back(name, values);
    file.emplace_back(authors_name(name), values);
  };
  add("backbone.embeddings.patch_embeddings.projection.weight", drawn({kDim, 3, 16, 16}, 0.04));
  add("backbone.embeddings.patch_embeddings.projection.bias", drawn({kDim}, 0.3));
  add("backbone.embeddings.position_embeddings", drawn({1, 193, kDim}, 0.3));
  const std::string layer = "backbone.encoder.layer.0.";
  for (const char* kind : {"weight", "bias"}) {
    const bool weight = kind == std::string("weight");
    const auto matrix = [&](int64_t out, int64_t in) {
      return weight ? drawn({out, in}, 1 / std::sqrt(static_cast<double>(in))) : drawn({out}, 0.3);
    };
    for (const char* norm : {"layernorm_before.", "layernorm_after."}) add(layer + norm + kind, drawn({kDim}, 1));
    add(str("backbone.layernorm.", kind), drawn({kDim}, 1));
    const Tensor qkv = matrix(3 * kDim, kDim);
    const char* const parts[] = {"query", "key", "value"};
    for (int64_t i = 0; i < 3; ++i)
      folder.emplace_back(layer + "attention.attention." + parts[i] + "." + kind,
                          qkv.narrow(0, i * kDim, kDim).clone());
    file.emplace_back(authors_name(layer + "attention.attention.query." + kind), qkv);
    add(layer + "attention.output.dense." + kind, matrix(kDim, kDim));
    add(layer + "mlp.fc1." + kind, matrix(kHidden, kDim));
    add(layer + "mlp.fc2." + kind, matrix(experts > 1 ? kDim - kPart : kDim, kHidden));
    for (int64_t i = 0; experts > 1 && i < experts; ++i)
      add(str(layer, "mlp.experts.", i, ".", kind), matrix(kPart, kHidden));
    add(str("head.conv.", kind), weight ? drawn({17, kDim, 3, 3}, 0.02) : drawn({17}, 0.3));
    if (experts > 1)
      file.emplace_back(str("associate_keypoint_heads.0.final_layer.", kind),
                        weight ? drawn({14, kDim, 3, 3}, 0.02) : drawn({14}, 0.3));
  }
  SameWeights result;
  weights::write_safetensors(result.file, file);
  const models::VitPoseConfig config = models::open_vitpose(result.file).config;
  weights::write_hub_folder(result.folder, models::write_vitpose_config(config), folder,
                            models::write_vitpose_processor(config));
  return result;
}

TEST(VitPose, ReadsTheFilesOfTheAuthors) {
  for (const int64_t experts : {1, 2}) {
    const SameWeights same = same_weights(experts);
    const PoseModel of_file(same.file, {}), of_folder(same.folder, {});
    const Tensor maps = of_file.whole_heat_maps(pose_image(1));
    EXPECT_EQ(maps.shape(), (Shape{17, 64, 48}));
    EXPECT_TRUE(testing::close(maps, of_folder.whole_heat_maps(pose_image(1)), 0));
    EXPECT_EQ(of_file.skeleton().keypoints, of_folder.skeleton().keypoints);
    EXPECT_EQ(of_file.skeleton().keypoints[10], "right_wrist");
    EXPECT_EQ(of_file.skeleton().limbs.size(), 19U);
    if (experts == 1) continue;
    const PoseModel& second = of_file.of_dataset(1);
    EXPECT_EQ(second.whole_heat_maps(pose_image(1)).shape(), (Shape{14, 64, 48})) << "it has a head of its own";
    EXPECT_EQ(second.skeleton().keypoints[3], "LABEL_3");
    EXPECT_FALSE(testing::close(of_folder.of_dataset(1).whole_heat_maps(pose_image(1)), maps, 1e-3));
  }
}

// A folder with a fixture's weights and another configuration.
fs::path changed_pose(const std::string& file, const std::function<void(json&)>& change) {
  const fs::path from = pose_fixture("simple"), to = testing::scratch_folder();
  for (const char* each : {"config.json", "preprocessor_config.json", "model.safetensors"})
    fs::copy_file(from / each, to / each);
  json object = json::parse(read_text_file(from / file));
  change(object);
  std::ofstream(to / file) << object;
  return to;
}

TEST(VitPose, RefusesOtherConfigurations) {
  const auto expect = [](const char* file, const char* where, const char* value,
                         const std::function<void(json&)>& change) {
    const fs::path folder = changed_pose(file, change);
    std::string message = error_of([&] { PoseModel(folder, {}); });
    if (message.starts_with(folder.string())) message.erase(0, folder.string().size() + 1);
    EXPECT_ERROR(message, str(file, ": ", where), value);
  };
  const char *model = "config.json", *processor = "preprocessor_config.json";
  expect(model, "model_type", "\"vit\"", [](json& c) { c["model_type"] = "vit"; });
  expect(model, "backbone_config", "none", [](json& c) { c.erase("backbone_config"); });
  expect(model, "backbone_config: model_type", "\"vit\"", [](json& c) { c["backbone_config"]["model_type"] = "vit"; });
  expect(model, "backbone_config: patch_size", "4", [](json& c) { c["backbone_config"]["patch_size"] = 4; });
  expect(model, "backbone_config: patch_size", "10", [](json& c) { c["backbone_config"]["patch_size"] = 10; });
  expect(model, "backbone_config: num_experts", "65", [](json& c) { c["backbone_config"]["num_experts"] = 65; });
  expect(model, "backbone_config: part_features", "24", [](json& c) {
    c["backbone_config"]["num_experts"] = 2;
    c["backbone_config"]["part_features"] = 24;
  });
  expect(model, "backbone_config: out_indices", "1", [](json& c) {
    c["backbone_config"].erase("out_features");
    c["backbone_config"]["out_indices"] = {1};
  });
  expect(model, "scale_factor", "17", [](json& c) { c["scale_factor"] = 17; });
  expect(model, "edges", "[0,5]", [](json& c) { c["edges"] = {{0, 5}}; });
  expect(processor, "image_processor_type", "\"ViTImageProcessor\"",
         [](json& c) { c["image_processor_type"] = "ViTImageProcessor"; });
  expect(processor, "size", "256×192", [](json& c) { c.erase("size"); });
  expect(processor, "normalize_factor", "100", [](json& c) { c["normalize_factor"] = 100; });
}

TEST(VitPose, NamesTellTheSides) {
  using models::BodySide;
  EXPECT_EQ(models::side_of("L_Eye"), BodySide::left);
  EXPECT_EQ(models::side_of("right ear"), BodySide::right);
  EXPECT_EQ(models::side_of("Left_Hip"), BodySide::left);
  EXPECT_EQ(models::side_of("Lip"), BodySide::none);
  EXPECT_EQ(models::side_of("upright"), BodySide::none);
  EXPECT_EQ(models::mirrored_keypoints({"R_Eye", "Nose", "L_Eye", "left ear", "Nose"}),
            (std::vector<int64_t>{2, 1, 0, 3, 4}));
}

// The logarithm of a Gaussian is a parabola: a step of Newton's method finds its top.
TEST(HeatMaps, KeypointsAreBetweenCells) {
  const Tensor maps = Tensor::zeros({2, 20, 30});
  for (int64_t y = 0; y < 20; ++y) {
    for (int64_t x = 0; x < 30; ++x) {
      const double dx = static_cast<double>(x) - 11.3, dy = static_cast<double>(y) - 7.6;
      maps.data<float>()[y * 30 + x] = static_cast<float>(0.9 * std::exp(-(dx * dx + dy * dy) / 8));
    }
  }
  const CropRegion region{.center = {100, 50}, .size = {58, 38}};  // two pixels a cell
  const std::vector<Keypoint> found = keypoints_of(maps, region);
  EXPECT_NEAR(found[0].x, 100 - 29 + 2 * 11.3, 0.01);
  EXPECT_NEAR(found[0].y, 50 - 19 + 2 * 7.6, 0.01);
  EXPECT_NEAR(found[0].score, 0.9 * std::exp(-(0.3 * 0.3 + 0.4 * 0.4) / 8), 1e-6);
  EXPECT_EQ(found[1].score, 0);
  EXPECT_NEAR(found[1].x, 100 - 29 - 2, 1e-9) << "a map without a value above 0";
}

TEST(HeatMaps, RegionsHaveTheRatioOfTheCrop) {
  const CropRegion wide = crop_region({10, 20, 60, 20}, {64, 48}), high = crop_region({10, 20, 15, 64}, {64, 48});
  EXPECT_EQ(wide.center, (std::array{40.0, 30.0}));
  EXPECT_EQ(wide.size, (std::array{75.0, 100.0}));
  EXPECT_EQ(high.size, (std::array{60.0, 80.0}));
}

std::string boxes_error(const std::string& text) {
  return error_of([&] { PersonBoxes file(text); });
}

TEST(PersonBoxes, AreThoseOfAnImage) {
  const PersonBoxes annotations(R"({"images": [{"id": 3, "file_name": "val/a.jpg"}, {"id": 4, "file_name": "b.jpg"}],
    "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "dog"}],
    "annotations": [{"image_id": 3, "category_id": 1, "bbox": [1, 2, 3, 4]},
                    {"image_id": 3, "category_id": 2, "bbox": [5, 2, 3, 4]},
                    {"image_id": 4, "category_id": 1, "bbox": [6, 2, 3, 4], "score": 0.5}]})");
  ASSERT_EQ(annotations.of("/data/val/a.jpg").size(), 1U);
  EXPECT_EQ(annotations.of("/data/val/a.jpg")[0].box, (std::array{1.0, 2.0, 3.0, 4.0}));
  EXPECT_EQ(annotations.of("a.jpg")[0].score, 1);
  EXPECT_EQ(annotations.of("b.jpg")[0].score, 0.5);
  EXPECT_ERROR(error_of([&] { annotations.of("other/a.jpg"); }), "boxes", "val/a.jpg, b.jpg");

  const PersonBoxes results(R"([{"image_id": 139, "category_id": 7, "bbox": [1, 2, 3, 4]},
    {"image_id": "x", "bbox": [5, 6, 7, 8]}, {"bbox": [9, 9, 9, 9]}])");
  EXPECT_EQ(results.of("val/000000000139.jpg").size(), 2U);
  EXPECT_EQ(results.of("x.png")[0].box[0], 5);
  EXPECT_EQ(results.of("other.png").size(), 1U) << "a box without an image is that of all";

  const PersonBoxes dogs(R"({"categories": [{"id": 2, "name": "dog"}],
    "annotations": [{"category_id": 2, "bbox": [1, 2, 3, 4]}]})");
  EXPECT_EQ(dogs.of("x.png")[0].label, "dog");
}

TEST(PersonBoxes, OfMalformedFilesAreRefused) {
  EXPECT_ERROR(
      boxes_error("{"), "boxes",
      "line 1, column 2: syntax error while parsing object key - unexpected end of input; expected string literal");
  EXPECT_ERROR(boxes_error("7"), "boxes", "7");
  EXPECT_ERROR(boxes_error("{}"), "boxes: annotations", "none in {}");
  EXPECT_ERROR(boxes_error(R"({"annotations": [3]})"), "boxes: annotations", "[3]");
  EXPECT_ERROR(boxes_error("[{}]"), "boxes: bbox", "none in {}");
  EXPECT_ERROR(boxes_error(R"([{"bbox": [1, 2, 3]}])"), "boxes: bbox", "[1,2,3]");
  EXPECT_ERROR(boxes_error(R"([{"bbox": [1, 2, 0, 4]}])"), "boxes: bbox", "[1,2,0,4]");
  EXPECT_ERROR(boxes_error(R"([{"bbox": [1e300, 2, 3, 4]}])"), "boxes: bbox", "[1e+300,2,3,4]");
  EXPECT_ERROR(boxes_error(R"([{"bbox": [1, 2, 3, 4], "score": "x"}])"), "boxes: score", "\"x\"");
  EXPECT_ERROR(boxes_error(R"([{"bbox": [1, 2, 3, 4], "image_id": 1.5}])"), "boxes: an id", "1.5");
  EXPECT_ERROR(boxes_error(R"({"images": [{"id": 1}], "annotations": []})"), "boxes: file_name", R"(none in {"id":1})");
  EXPECT_ERROR(boxes_error(R"({"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 2}]})"),
               "boxes: image_id", "2");
  EXPECT_ERROR(boxes_error(R"({"categories": [{"id": 1, "name": "a"}], "annotations": [{"category_id": 2}]})"),
               "boxes: category_id", "2");
}

// The result of the task for an image.
json posed(const Parameters& given, const std::string& boxes = {}, image::Image* rendered = nullptr,
           Tensor* array = nullptr) {
  static const PoseModel model(pose_folder("simple"), {});
  RequestOptions options;
  options.add(given);
  Setting setting{.model = "", .render = rendered != nullptr};
  if (!boxes.empty()) setting.input_files = {"boxes"};
  const auto request = find_task("pose", model)->request(model, options, setting);
  std::vector<Item> items(1);
  items[0].name = "photos/0.png";
  items[0].photo = pose_image(0);
  if (!boxes.empty()) items[0].input_files["boxes"] = std::make_shared<const std::string>(boxes);
  run(model, *request, items);
  if (rendered) *rendered = request->render(items[0]);
  if (array) *array = request->array(items[0], 0);
  return json::parse(request->json(items[0]));
}

TEST(Pose, ResultsAreThePersonsInTheBoxes) {
  const json found = posed({}, read_text_file(testing::fixture("vitpose/boxes.json")));
  EXPECT_EQ(found["path"], "photos/0.png");
  EXPECT_EQ(found["names"], (json{"Nose", "L_Eye", "R_Eye", "left ear", "right ear"}));
  EXPECT_EQ(found["limbs"], (json{{0, 1}, {0, 2}, {1, 3}, {2, 4}}));
  ASSERT_EQ(found["persons"].size(), 3U);
  double last = 1e9;
  for (const json& person : found["persons"]) {
    EXPECT_EQ(person["label"], "person");
    EXPECT_LE(person["score"], last);
    last = person["score"];
    double sum = 0;
    for (const json& keypoint : person["keypoints"]) sum += keypoint[2].get<double>();
    EXPECT_NEAR(last, sum / 5, 1e-5);
  }
  EXPECT_EQ(posed({}, R"([{"image_id": 7, "bbox": [1, 2, 3, 4]}])")["persons"], json::array());
}

TEST(Pose, WithoutBoxesTheImageIsOnePerson) {
  const json found = posed({})["persons"];
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]["box"], (json{0.0, 0.0, 131.0, 203.0}));
  EXPECT_EQ(found, posed({}, R"([{"bbox": [0, 0, 131, 203]}])")["persons"]);
}

TEST(Pose, ScoresAreThoseOfTheBoxTimesThoseOfTheKeypoints) {
  const auto score = [](const char* boxes) { return posed({}, boxes)["persons"][0]["score"].get<double>(); };
  EXPECT_NEAR(score(R"([{"bbox": [1, 2, 30, 40], "score": 0.25}])"), score(R"([{"bbox": [1, 2, 30, 40]}])") / 4, 1e-6);
}

TEST(Pose, BoxesBeyondTheImageAreRefused) {
  const std::string message = error_of([] { posed({}, R"([{"bbox": [131, 0, 10, 10]}])"); });
  EXPECT_ERROR(message, "boxes", "[131, 0, 10, 10]");
}

TEST(Pose, OptionsChangeResults) {
  EXPECT_NE(posed({{"flip-test", "true"}}), posed({}));
  EXPECT_ERROR(error_of([] { posed({{"dataset", "1"}}); }), "dataset", "1");
  const fs::path folder = changed_pose("config.json", [](json& c) { c["id2label"]["1"] = c["id2label"]["3"] = "x"; });
  EXPECT_ERROR(error_of([&] { PoseModel(folder, {}).check_flip_test(); }), "flip-test", "one without");
}

TEST(Pose, FilesHaveTheResultsOfCoco) {
  Pose pose{.box = {.score = 0.5, .category = 7}, .keypoints = {{1.5, -2, 0.25F}, {3, 4, 0.75F}}};
  EXPECT_EQ(coco_poses("x/000139.jpg", {pose, {.box = {}, .keypoints = {{0, 0, 1}}}}),
            R"({"image_id":139,"category_id":7,"keypoints":[1.5,-2.0,0.25,3.0,4.0,0.75],"score":0.25})"
            ",\n"
            R"({"image_id":139,"category_id":1,"keypoints":[0.0,0.0,1.0],"score":1.0})");
  EXPECT_EQ(coco_poses("x.jpg", {}), "");
  pose.track = 12;
  EXPECT_EQ(json::parse(coco_poses("x.jpg", {pose}))["track_id"], 12);
  EXPECT_EQ(PersonBoxes(R"([{"bbox": [1, 2, 3, 4], "category_id": 9}])").of("x.png")[0].category, 9);
}

TEST(Pose, ArraysHaveARowForEachKeypoint) {
  Tensor array;
  const json found = posed({}, R"([{"bbox": [1, 2, 30, 40]}, {"bbox": [50, 60, 30, 40]}])", nullptr, &array)["persons"];
  ASSERT_EQ(array.shape(), (Shape{2, 5, 3}));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(array.data<float>()[15 + 3 + i], found[1]["keypoints"][1][i].get<float>());
}

TEST(Pose, OverlaysHaveLimbsInTheColorOfTheSide) {
  const Skeleton skeleton{{"nose", "left_hip", "left_knee", "right_hip"}, {{1, 2}, {0, 3}}};
  const std::vector<Pose> poses{{.box = {.box = {10, 10, 80, 50}},
                                 .keypoints = {{20, 20, 0.9F}, {30, 40, 0.9F}, {70, 40, 0.9F}, {60, 20, 0.2F}}}};
  const image::Image image = poses_overlay(image::make_image(100, 80, 3), skeleton, poses, 0.3);
  const auto pixel = [&](int64_t x, int64_t y) {
    const uint8_t* const at = image.row(y) + 3 * x;
    return std::array{at[0], at[1], at[2]};
  };
  const std::array<uint8_t, 3> black{0, 0, 0}, left{0, 160, 255}, middle{0, 210, 0};
  EXPECT_EQ(pixel(50, 40), left) << "a limb";
  EXPECT_EQ(pixel(20, 20), middle) << "a key point";
  EXPECT_EQ(pixel(60, 20), black) << "a key point below the threshold";
  EXPECT_EQ(pixel(40, 20), black) << "the limb to it";
  EXPECT_EQ(pixel(10, 30), (std::array<uint8_t, 3>{255, 255, 255})) << "the box";
  EXPECT_EQ(pixel(50, 44), black);
  image::Image rendered;
  posed({{"keypoint-threshold", "1"}}, R"([{"bbox": [1, 2, 30, 40]}])", &rendered);
  EXPECT_EQ(rendered.width, 131);
}

}  // namespace
}  // namespace vitrail::tasks
