// SPDX-License-Identifier: Apache-2.0
// What convert says of what it writes, and the calibration of int8.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <tuple>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/apps/shell.h"
#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "tests/support/onnx_file.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/base/random.h"
#include "vitrail/data/augment/random_area_crop.h"
#include "vitrail/image/decode.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/load.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/quantize/rounding.h"
#include "vitrail/quantize/sensitivity.h"
#include "vitrail/quantize/smoothing.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// What the run says; the same with --quiet says nothing.
std::string said(const Arguments& arguments) {
  const std::string text = run(arguments).err;
  EXPECT_EQ(run(arguments + Arguments{"--quiet"}).err, "") << ::testing::PrintToString(arguments);
  return text;
}

std::string source_of(const models::OpenedModel& opened) {
  return str(" (source: ", opened.key_map.name(), " keys, ", opened.checkpoint->format(), ")\n");
}

TEST(ConvertMessages, OfFoldersCountTensorsAndParameters) {
  const fs::path folder = scratch_folder();
  const std::string vit = ", as timm's vit_tiny_patch16_224";
  const std::string own = ", in vitrail's own form, because timm has no such architecture";
  for (const auto& [name, form] : std::vector<std::pair<std::string, std::string>>{
           {"timm_token", vit}, {"hf_vit", vit}, {"timm_pth", vit}, {"timm_sinusoidal", own}}) {
    const models::OpenedModel opened = models::open_model(model_fixture(name));
    const models::VisionTransformer model = models::build_model(opened);
    const auto tensors = model.named_parameters().size();
    const std::string parameters = str(" tensors, ", model.num_parameters(), " parameters, ");
    for (const std::string dtype : {"fp32", "bf16", "fp16"}) {
      const fs::path copy = folder / (name + dtype);
      EXPECT_EQ(said({"convert", model_fixture(name), "-o", copy, "--dtype", dtype}),
                copy.string() + ": " + str(tensors) + parameters + dtype + form + source_of(opened));
    }
    const fs::path int8 = folder / (std::string(name) + "int8");
    EXPECT_EQ(said({"convert", model_fixture(name), "-o", int8, "--dtype", "int8"}),
              int8.string() + ": " + str(tensors + 4 * 2) + parameters + "int8" + source_of(opened) +
                  "0 of 8 linear layers excluded from int8\n")
        << "a scale for each of four matrices of both blocks";
  }
}

TEST(ConvertMessages, ListTheLayersThatInt8Excludes) {
  const fs::path folder = scratch_folder();
  const std::string text = run({"convert", small_model(), "-o", folder, "--dtype", "int8", "--calibrate",
                                image_folder(2), "--tolerance", "1e-9"})
                               .err;
  const auto config = nlohmann::json::parse(content_of(folder / "config.json"));
  std::string layers;
  for (const auto& layer : config["int8"]["excluded"])
    layers += (layers.empty() ? "" : ", ") + layer.get<std::string>();
  EXPECT_EQ(lines_of(text).back(), "8 of 8 linear layers excluded from int8: " + layers);
}

TEST(ConvertMessages, OfOnnxFilesNameTheOpsetAndEachFile) {
  const fs::path folder = scratch_folder();
  const models::OpenedModel opened = models::open_model(small_model());
  const auto parameters = models::build_model(opened).num_parameters();
  const std::string file = folder / "m.onnx";
  EXPECT_EQ(said({"convert", small_model(), "-o", file}),
            str(file, ": opset 17, ", parameters, " parameters, fp32", source_of(opened)));
  EXPECT_EQ(said({"convert", small_model(), "-o", file, "--opset", "19"}),
            str(file, ": opset 19, ", parameters, " parameters, fp32", source_of(opened)));
  EXPECT_EQ(read_onnx(file).opset, 19);
  EXPECT_EQ(said({"convert", small_model(), "-o", file, "--dtype", "int8", "--calibrate", image_folder(1),
                  "--activations", "uint8"}),
            str(file, ": opset 17, ", parameters,
                " parameters, 9 linear layers with int8 weights and uint8 activations", source_of(opened)))
      << "four of each block, and the patch embedding";
  const fs::path int8 = folder / "int8";
  run({"convert", small_model(), "-o", int8, "--dtype", "int8"});
  EXPECT_EQ(said({"convert", int8, "-o", file, "--dtype", "int8"}),
            str(file, ": opset 17, ", parameters, " parameters, int8", source_of(models::open_model(int8))));
}

TEST(ConvertMessages, OfDualModelsNameBothTowers) {
  const fs::path folder = scratch_folder(), source = fixture("models/hf_clip");
  const models::OpenedModel opened = models::open_model(source);
  const size_t tensors = read_golden(source / "model.safetensors").tensors.size();
  EXPECT_EQ(said({"convert", source, "-o", folder / "copy", "--dtype", "fp16"}),
            str((folder / "copy").string(), ": ", tensors, " tensors of both towers, fp16", source_of(opened)));
  EXPECT_EQ(nlohmann::json::parse(content_of(folder / "copy/config.json")),
            nlohmann::json::parse(content_of(source / "config.json")));
  EXPECT_EQ(nlohmann::json::parse(content_of(folder / "copy/preprocessor_config.json")),
            nlohmann::json::parse(content_of(source / "preprocessor_config.json")));
  const std::string image = folder / "m.onnx", text = folder / "m.text.onnx";
  const auto parameters = models::build_model(opened).num_parameters(),
             of_text = models::build_text_tower(opened).model.num_parameters();
  EXPECT_EQ(said({"convert", source, "-o", image, "--opset", "18", "--dynamic-batch"}),
            str(image, ": opset 18, ", parameters, " parameters, fp32", source_of(opened), text, ": opset 18, ",
                of_text, " parameters, fp32\n"));
  for (const std::string& file : {image, text}) {
    const OnnxFile graph = read_onnx(file);
    EXPECT_EQ(graph.opset, 18) << file;
    EXPECT_FALSE(std::isdigit(static_cast<unsigned char>(graph.inputs[0].shape[0][0])) != 0) << file;
  }
  run({"convert", source, "-o", image});
  EXPECT_EQ(read_onnx(image).inputs[0].shape[0], "1");
}

TEST(ConvertMessages, OfSegmentAnythingNameEncoderAndDecoder) {
  const fs::path folder = scratch_folder(), model = sam_fixture("padded_windows").model,
                 encoder = sam_fixture("timm_encoder").model;
  const models::Sam sam = models::load_sam(model);
  const auto parameters = sam.num_parameters();
  EXPECT_EQ(said({"convert", model, "-o", folder / "copy", "--dtype", "fp16"}),
            str((folder / "copy").string(), ": ", sam.named_parameters().size(), " tensors, ", parameters,
                " parameters, fp16\n"));
  EXPECT_EQ(said({"convert", model, "-o", folder / "m.onnx", "--opset", "20"}),
            str((folder / "m.encoder.onnx").string(), " and ", (folder / "m.decoder.onnx").string(), ": opset 20, ",
                parameters, " parameters, fp32\n"));
  for (const char* file : {"m.encoder.onnx", "m.decoder.onnx"}) EXPECT_EQ(read_onnx(folder / file).opset, 20) << file;
  EXPECT_EQ(said({"convert", encoder, "-o", folder / "e.onnx"}),
            str((folder / "e.encoder.onnx").string(), ": opset 17, ", models::load_sam(encoder).num_parameters(),
                " parameters, fp32\n"));
  EXPECT_FALSE(fs::exists(folder / "e.decoder.onnx"));
}

// What the form of the source cannot express.
TEST(ConvertDual, TheWarningNamesTheOptionThatLeavesTheTextTowerOut) {
  const std::string clip = fixture("models/hf_clip"), map = models::open_model(clip).key_map.name();
  for (const auto& [option, value, reason] :
       {std::tuple("--config", clip + "/config.json", "--config"), std::tuple("--key-map", map, "--key-map"),
        std::tuple("--image-size", std::string("32"), "--image-size"),
        std::tuple("--preset", std::string("imagenet"), "preprocessing"),
        std::tuple("--mean", std::string("0.5"), "preprocessing"),
        std::tuple("--std", std::string("0.5"), "preprocessing"),
        std::tuple("--interpolation", std::string("box"), "preprocessing"),
        std::tuple("--crop-pct", std::string("0.5"), "preprocessing"),
        std::tuple("--crop-mode", std::string("squash"), "preprocessing"),
        std::tuple("--dtype", std::string("int8"), "--dtype int8")}) {
    const fs::path folder = scratch_folder() / "f";
    // A processor of transformers has no crop of timm.
    const std::string source = std::string(option).starts_with("--crop") ? fixture("models/open_clip").string() : clip;
    const ProgramResult result = run({"convert", source, "-o", folder, option, value});
    const std::string why = std::string(reason) == "preprocessing" ? "the options of preprocessing" : reason,
                      hint = value == "int8" ? "; zeroshot needs both, which --dtype fp16 keeps" : "";
    EXPECT_EQ(lines_of(result.err).at(0),
              "vitrail: warning: " + source +
                  ": the text tower is left out: the output is the image tower, because of " + why + hint)
        << option;
    EXPECT_FALSE(fs::exists(folder / "vocab.json"));
  }
}

// The values of each tensor are those of its form.
TEST(ConvertTensors, BeyondTheRangeOfFp16AreNamedOnce) {
  const fs::path folder = scratch_folder(), model = with_config("timm_token", [](auto&) {});
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, tensor] : read_golden(model / "model.safetensors").tensors) {
    tensors.emplace_back(name, tensor.clone());
    if (name == "head.bias" || name == "norm.weight") tensors.back().second.data<float>()[1] = -65536;
    if (name == "head.weight") tensors.back().second.data<float>()[1] = 65504;
  }
  weights::write_safetensors(model / "model.safetensors", tensors, {});
  const std::string text = run({"convert", model, "-o", folder, "--dtype", "fp16"}).err;
  EXPECT_TRUE(contains(text, "warning: 2 tensors kept in fp32, with values beyond the range of fp16 (65504): "))
      << text;
  EXPECT_TRUE(contains(text, "(65504): norm.weight, head.bias\n") ||
              contains(text, "(65504): head.bias, norm.weight\n"))
      << text;
  const Golden half = read_golden(folder / "model.safetensors");
  for (const auto& [name, tensor] : tensors) {
    const bool kept = name == "head.bias" || name == "norm.weight";
    EXPECT_EQ(half[name].dtype(), kept ? DType::f32 : DType::f16) << name;
    EXPECT_TRUE(close(half[name], tensor.to(kept ? DType::f32 : DType::f16), 0)) << name;
  }
  EXPECT_EQ(lines_of(run({"convert", model, "-o", folder / "b", "--dtype", "bf16"}).err).size(), 1U) << "all fit";
}

// The images of a calibration, and what is made of them: each image and three crops of it, in batches of eight; one
// more crop of every fourth image tells the error.
TEST(ConvertInt8, IsCalibratedByEachImageAndThreeCropsOfIt) {
  const fs::path images = image_folder(6), folder = scratch_folder();
  const double tolerance = 6e-4;
  run({"convert", small_model(), "-o", folder, "--dtype", "int8", "--calibrate", images, "--tolerance",
       str(tolerance)});
  const models::OpenedModel opened = models::open_model(small_model());
  const image::EvalTransform transform = infer::transform_of(opened.config.preprocessing, "model");
  std::vector<Tensor> calibration, validation;
  RandomStream random(random_key("calibration_images"));
  for (int i = 0; i < 6; ++i) {
    const image::Image image = image::read_image(images / (std::string(1, static_cast<char>('a' + i)) + ".png"));
    const auto input = [&](const image::Image& part) { return image::apply(part, transform).unsqueeze(0); };
    calibration.push_back(input(image));
    for (int crop = 0; crop < 3; ++crop) calibration.push_back(input(data::random_area_crop(image, random)));
    if (i % 4 == 0) validation.push_back(input(data::random_area_crop(image, random)));
  }
  ASSERT_EQ(calibration.size(), 24U);
  const auto batches_of = [](const std::vector<Tensor>& inputs) {
    std::vector<Tensor> batches;
    for (size_t first = 0; first < inputs.size(); first += 8) {
      const auto end = inputs.begin() + static_cast<std::ptrdiff_t>(std::min(first + 8, inputs.size()));
      batches.push_back(ops::cat({inputs.begin() + static_cast<std::ptrdiff_t>(first), end}, 0));
    }
    return batches;
  };
  models::VisionTransformer model = models::build_model(opened);
  quantize::smooth_activations(model, batches_of(calibration));
  const auto originals = quantize::gptq_round(model, batches_of(calibration));
  const auto sensitivity = quantize::int8_sensitivity(model, batches_of(validation), originals);
  const std::vector<std::string> excluded = quantize::layers_to_exclude(sensitivity, tolerance);
  const auto config = nlohmann::json::parse(content_of(folder / "config.json"));
  EXPECT_EQ(config["int8"]["excluded"].get<std::vector<std::string>>(), excluded);
  EXPECT_GT(excluded.size(), 0U) << "another tolerance tests more";
  EXPECT_LT(excluded.size(), 8U) << "another tolerance tests more";
  const Golden got = read_golden(folder / "model.safetensors");
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
    const auto original = originals.find(layer);
    if (original == originals.end() || !parameter.name.ends_with(".weight")) continue;
    if (std::ranges::count(excluded, layer) > 0) {
      EXPECT_EQ(size_of(got[parameter.name].dtype()), 2U) << parameter.name;
      EXPECT_TRUE(close(got[parameter.name].to(DType::f32), original->second, 1e-4, 1.0 / 256)) << parameter.name;
      continue;
    }
    const QuantizedTensor want = quantize::with_correction(original->second, parameter.tensor);
    EXPECT_EQ(got[parameter.name].dtype(), DType::i8);
    EXPECT_TRUE(close(got[parameter.name], want.values, 0)) << parameter.name;
  }
}

// A folder may have the configurations of two libraries: that of the weights' file is kept.
TEST(ConvertDual, KeepsTheConfigurationOfItsWeights) {
  for (const auto& [name, own, other] : {std::tuple("hf_clip", "config.json", "open_clip_config.json"),
                                         std::tuple("open_clip", "open_clip_config.json", "config.json")}) {
    const fs::path source = scratch_folder(), copy = scratch_folder() / "copy";
    fs::copy(fixture(str("models/", name)), source, fs::copy_options::recursive);
    std::ofstream(source / other) << "{}";
    run({"convert", source, "-o", copy});
    EXPECT_EQ(nlohmann::json::parse(content_of(copy / "config.json")), nlohmann::json::parse(content_of(source / own)));
    EXPECT_FALSE(fs::exists(copy / "open_clip_config.json"));
  }
}

}  // namespace
}  // namespace vitrail::testing
