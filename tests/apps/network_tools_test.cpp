// SPDX-License-Identifier: Apache-2.0
// inspect, bench and convert with models that run by their tasks.
#include <algorithm>
#include <cstdio>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/support/onnx_file.h"
#include "vitrail/base/npy.h"
#include "vitrail/base/text.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"
#include "vitrail/tasks/depth/depth_model.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path estimator_folder(const std::string& name = "relative") {
  return fixture("depth/" + name + "/config.json").parent_path();
}

// Fixtures whose maps are not those of depth, their commands and the outputs of their networks.
struct MapModel {
  std::string folder, task;
  std::vector<std::string> outputs;  // names and shapes
};

fs::path folder_of(const MapModel& model) { return fixture(model.folder + "/config.json").parent_path(); }

const std::vector<MapModel>& map_models() {
  static const std::vector<MapModel> models{
      {"eomt/panoptic", "segment", {"class_queries_logits [1, 7, 6]", "masks_queries_logits [1, 7, 18, 18]"}},
      {"eomt/dinov3_semantic", "segment", {"class_queries_logits [1, 7, 6]", "masks_queries_logits [1, 7, 24, 24]"}},
      {"semantic/linear", "segment", {"logits [1, 7, 7, 7]"}},
      {"semantic/dpt", "segment", {"logits [1, 7, 64, 64]"}},
      {"semantic/beit", "segment", {"logits [1, 7, 28, 28]"}},
      {"yolos/mid", "detect", {"logits [1, 9, 6]", "pred_boxes [1, 9, 4]"}},
      {"yolos/plain", "detect", {"logits [1, 9, 6]", "pred_boxes [1, 9, 4]"}},
      {"rf_detr/windows", "detect", {"logits [1, 7, 5]", "pred_boxes [1, 7, 4]"}},
      {"rf_detr/edges", "detect", {"logits [1, 7, 5]", "pred_boxes [1, 7, 4]"}},
      {"rf_detr/lw", "detect", {"logits [1, 7, 5]", "pred_boxes [1, 7, 4]"}},
      {"rf_detr/masks", "detect", {"logits [1, 7, 5]", "pred_boxes [1, 7, 4]", "pred_masks [1, 7, 16, 16]"}},
      {"vitpose/simple", "pose", {"heatmaps [1, 5, 32, 24]"}},
      {"vitpose/experts", "pose", {"heatmaps [1, 5, 32, 24]"}},
      {"owl/v2", "detect", {"logits [1, 36, 1]", "pred_boxes [1, 36, 4]", "objectness_logits [1, 36]"}},
      {"owl/v1", "detect", {"logits [1, 64, 1]", "pred_boxes [1, 64, 4]"}},
      {"vitmatte/windows", "matte", {"alphas [1, 1, 512, 512]"}}};
  return models;
}

// The array of the task, of whatever name, for an image with a trimap.
std::vector<float> map_values(const MapModel& model, const fs::path& folder) {
  const fs::path out = scratch_folder(), image = noise_folder() / "a.png", trimap = out / "trimap.png";
  Arguments command{model.task, "-m", folder, image, "--arrays", out};
  if (model.task == "matte") {
    const image::Image size = image::read_image(image);
    image::Image unknown = image::make_image(size.width, size.height, 1);
    std::ranges::fill(unknown.pixels, uint8_t{128});
    image::write_png(trimap, unknown);
    command = command + Arguments{"--trimap", trimap};
  }
  if (model.folder.starts_with("owl/")) command = command + Arguments{"--labels", "a photo"};
  run(command);
  const fs::path labels = out / "a.labels.npy";
  return read_npy(fs::exists(labels) ? labels : out / "a.npy").f32;
}

// The message for a wrong use of options.
std::string misuse_of_network(const Arguments& arguments) {
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.status, 2) << ::testing::PrintToString(arguments) << result.err;
  return result.err;
}

// What --slice prints below the name and the shape.
std::string sliced(const std::string& slice, const Arguments& more = {}) {
  const std::string out = inspected(Arguments{"-m", estimator_folder(), "--slice", slice} + more);
  return out.substr(out.find('\n') + 1);
}

std::vector<float> depth_values(const fs::path& model, const fs::path& image) {
  const fs::path folder = scratch_folder();
  run({"depth", "-m", model, image, "--arrays", folder});
  return read_npy(folder / (image.stem().string() + ".npy")).f32;
}

TEST(InspectNetwork, SummaryHasInputsAndOutputs) {
  const fs::path folder = estimator_folder();
  const std::string parameters = std::to_string(tasks::open_model(folder)->network()->module.num_parameters());
  EXPECT_EQ(inspected({"-m", folder}),
            "architecture  depth_anything\nweights       " + (folder / "model.safetensors").string() +
                " (safetensors), huggingface_depth keys\ninput         images [1, 3, 98, 98]\n"
                "output        depth [1, 98, 98]\nbackbone      width 24, depth 5, 3 heads\nparameters    " +
                parameters + "\n");
  const std::string tree = inspected({"-m", folder, "--tree"});
  EXPECT_TRUE(contains(tree, "(neck): Neck(")) << tree;
  EXPECT_TRUE(contains(tree, " " + parameters + "\n")) << tree;
  EXPECT_TRUE(contains(inspected({"-m", folder, "--keys"}), "\nneck.convs.0.weight "));
}

// The values of a pass over an image are those of the session.
TEST(InspectNetwork, TraceGivesTheValuesOfTheTask) {
  const fs::path image = noise_folder() / "a.png";
  const auto model = tasks::open_model(estimator_folder());
  const auto encoding = model->encode(image::read_image(image));
  const float* const want = static_cast<const tasks::DepthEncoding&>(*encoding).map.data<float>();
  for (const auto& [slice, batch] : {std::pair{"depth[0, 0, :2]", "1"}, {"depth[1, 0, :2]", "2"}}) {
    double got[2] = {};
    const std::string printed = sliced(slice, {"--trace", image, "--batch", batch});
    ASSERT_EQ(std::sscanf(printed.c_str(), "[%lf, %lf]", &got[0], &got[1]), 2) << printed;
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(got[i], want[i], 1e-4);
  }
}

TEST(InspectNetwork, TraceAndSlicesHaveTheNamesOfTheModules) {
  const std::string out = inspected({"-m", estimator_folder(), "--trace", "random"});
  for (const std::string name : {"backbone.blocks.4.mlp.fc2", "neck.reassemble_stage.layers.0.resize", "neck.convs.3",
                                 "neck.fusion_stage.layers.3", "neck", "head.conv3", "depth"})
    EXPECT_TRUE(contains(out, "\n" + name + " ")) << name;
  EXPECT_EQ(sliced("backbone.embeddings.cls_token[0, 0, :3]"), sliced("backbone.cls_token[0, 0, :3]"));
}

TEST(InspectNetwork, SummariesHaveTheOutputsOfTransformers) {
  for (const MapModel& model : map_models()) {
    const std::string out = inspected({"-m", folder_of(model)});
    for (const std::string& output : model.outputs)
      EXPECT_TRUE(contains(out, "\noutput        " + output + "\n")) << model.folder << out;
    EXPECT_TRUE(contains(out, model.task == "matte" ? "images [1, 4, 512, 512]\n" : "images [1, 3, ")) << out;
  }
}

TEST(InspectNetwork, TracesQueriesAndMattes) {
  const fs::path image = noise_folder() / "a.png";
  const std::string eomt = inspected({"-m", folder_of(map_models()[0]), "--trace", image});
  for (const std::string name : {"backbone.blocks.3", "mask_head.fc3", "upscale_block.block.0", "class_predictor"})
    EXPECT_TRUE(contains(eomt, "\n" + name + " ")) << name;
  const std::string matte = inspected({"-m", fixture("vitmatte/windows/config.json").parent_path(), "--trace", image});
  for (const std::string name : {"backbone.blocks.0", "decoder.fusion_blocks.3", "decoder", "alphas"})
    EXPECT_TRUE(contains(matte, "\n" + name + " ")) << name;
}

TEST(InspectNetwork, OptionsOfOtherFamiliesAreRefused) {
  const std::string size = misuse_of_network({"inspect", "-m", estimator_folder(), "--image-size", "70"});
  EXPECT_TRUE(contains(size, "--image-size: does not apply to a depth estimator")) << size;
}

TEST(BenchNetwork, HasARowForThePassAndForTheTask) {
  const Arguments quick{"bench", estimator_folder(), "--seconds", "0.001", "--precision", "fp32,half,int8"};
  const std::vector<json> objects = json_lines(run(quick).out);
  ASSERT_EQ(objects.size(), 6U);
  for (size_t i = 0; i < objects.size(); ++i) {
    EXPECT_EQ(objects[i]["task"], i % 2 == 0 ? "forward" : "depth");
    EXPECT_EQ(objects[i]["precision"], i < 2 ? "fp32" : i < 4 ? "half" : "int8");
    EXPECT_EQ(objects[i]["batch"], 1);
    EXPECT_LE(objects[i]["min_ms"], objects[i]["median_ms"]);
    EXPECT_NEAR(objects[i]["images_per_second"].get<double>() * objects[i]["median_ms"].get<double>(), 1e3, 1e-6);
    for (const char* key : {"model", "arithmetic", "threads", "isa", "runs", "peak_rss_mb"})
      EXPECT_TRUE(objects[i].contains(key)) << key;
  }
  const std::vector<std::string> lines = lines_of(run(quick + Arguments{"--format", "table"}).out);
  ASSERT_EQ(lines.size(), 8U);
  EXPECT_TRUE(contains(lines[1], "task      precision  median ms")) << lines[1];
}

TEST(BenchNetwork, EachModelRunsItsTask) {
  for (const MapModel& model : map_models()) {
    const std::vector<json> objects = json_lines(run({"bench", folder_of(model), "--seconds", "0.001"}).out);
    ASSERT_EQ(objects.size(), 2U) << model.folder;
    EXPECT_EQ(objects[0]["task"], "forward");
    EXPECT_EQ(objects[1]["task"], model.task);
  }
}

TEST(BenchNetwork, OptionsOfOtherFamiliesAreRefused) {
  for (const Arguments& more : {Arguments{"--train"}, {"--profile"}, {"--batch", "2"}, {"--tome", "2"}}) {
    const std::string message = misuse_of_network(Arguments{"bench", estimator_folder()} + more);
    EXPECT_TRUE(contains(message, more[0] + ": ") && contains(message, "a depth estimator")) << message;
  }
}

TEST(ConvertNetwork, AFolderKeepsNamesFilesAndMaps) {
  const fs::path image = noise_folder() / "a.png", folder = scratch_folder();
  for (const std::string name : {"relative", "metric", "dpt_dinov2"}) {
    const fs::path source = estimator_folder(name);
    const std::vector<float> want = depth_values(source, image);
    const float range = std::ranges::max(want) - std::ranges::min(want);
    for (const auto& [dtype, tolerance] : {std::pair{"fp32", 1e-6F}, {"bf16", 0.1F}}) {
      const fs::path copy = folder / (name + dtype);
      run({"convert", source, "-o", copy, "--dtype", dtype});
      EXPECT_EQ(content_of(copy / "config.json"), content_of(source / "config.json"));
      EXPECT_EQ(content_of(copy / "preprocessor_config.json"), content_of(source / "preprocessor_config.json"));
      const auto checkpoint = weights::Checkpoint::open(copy / "model.safetensors");
      EXPECT_TRUE(checkpoint.has("neck.convs.0.weight") && !checkpoint.has("backbone.cls_token"));
      EXPECT_EQ(checkpoint.info("neck.convs.0.weight").dtype, dtype_from_name(dtype));
      const std::vector<float> got = depth_values(copy, image);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance * range) << name << i;
    }
  }
}

TEST(ConvertNetwork, FoldersAndGraphsOfEachModel) {
  for (const MapModel& model : map_models()) {
    SCOPED_TRACE(model.folder);
    const fs::path source = folder_of(model), copy = scratch_folder() / "copy", file = scratch_folder() / "model.onnx";
    run({"convert", source, "-o", copy});
    EXPECT_EQ(content_of(copy / "config.json"), content_of(source / "config.json"));
    EXPECT_EQ(map_values(model, copy), map_values(model, source));
    run({"convert", source, "-o", file});
    const OnnxFile graph = read_onnx(file);
    EXPECT_EQ(graph_errors(graph), "");
    ASSERT_EQ(graph.outputs.size(), model.outputs.size());
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const OnnxFile::Value& output = graph.outputs[i];
      EXPECT_EQ(output.name + " [" + join(output.shape) + "]", model.outputs[i]);
    }
    EXPECT_EQ(json::parse(graph.metadata.at("config.json")), json::parse(content_of(source / "config.json")));
  }
}

TEST(ConvertNetwork, AGraphHasTheSizeOfTheOption) {
  const fs::path file = scratch_folder() / "depth.onnx";
  run({"convert", estimator_folder(), "-o", file, "--image-size", "70,112"});
  const OnnxFile graph = read_onnx(file);
  EXPECT_EQ(graph.inputs[0].shape, (std::vector<std::string>{"1", "3", "70", "112"}));
  EXPECT_EQ(graph.outputs[0].shape, (std::vector<std::string>{"1", "70", "112"}));
  EXPECT_EQ(json::parse(graph.metadata.at("config.json")), json::parse(content_of(estimator_folder() / "config.json")));
  EXPECT_TRUE(graph.metadata.contains("preprocessor_config.json"));
}

TEST(ConvertNetwork, RefusesWhatItDoesNotHave) {
  const auto refused = [](const Arguments& more, const std::string& output = "d.onnx") {
    return misuse_of_network(Arguments{"convert", estimator_folder(), "-o", scratch_folder() / output} + more);
  };
  EXPECT_TRUE(contains(refused({"--single-mask"}), "--single-mask: is for a Segment Anything model"));
  EXPECT_TRUE(contains(refused({"--mean", "0.5"}), "--mean and --std: does not apply to a depth estimator"));
  EXPECT_TRUE(contains(refused({"--image-size", "70"}, "folder"), "--image-size: does not apply"));
  EXPECT_TRUE(contains(refused({"--dtype", "int8"}), "--dtype: expected fp32 for an ONNX file of a depth estimator"));
}

}  // namespace
}  // namespace vitrail::testing
