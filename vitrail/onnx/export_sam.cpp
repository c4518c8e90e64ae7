// SPDX-License-Identifier: Apache-2.0
#include "vitrail/onnx/export_sam.h"

#include "vitrail/base/error.h"
#include "vitrail/onnx/export_internal.h"
#include "vitrail/onnx/lowering_internal.h"
#include "vitrail/onnx/sam_decoder_internal.h"

namespace vitrail::onnx {
namespace {

constexpr const char* kImage = "image";

models::Preprocessing preprocessing() {
  models::Preprocessing result;
  result.mean.emplace();
  result.std.emplace();
  for (size_t c = 0; c < models::kSamImageMean.size(); ++c) {
    result.mean->push_back(models::kSamImageMean[c] * result.rescale_factor);
    result.std->push_back(models::kSamImageStd[c] * result.rescale_factor);
  }
  return result;
}

// [N, 3, height, width] → [N, 3, size, size] with zeros on the right and below.  A larger image fails in the last
// operator.
std::string padded(GraphBuilder& graph, const std::string& planes, int64_t size) {
  const std::string sides = graph.node("Shape", {planes}, {{"start", int64_t{2}}, {"end", int64_t{4}}});
  const std::string missing = graph.node("Sub", {graph.constant(Ints{size, size}), sides});
  const std::string ends = graph.node("Max", {missing, graph.constant(Ints{0, 0})});
  const std::string pads = graph.concat({graph.constant(Ints(6, 0)), ends}, 0);
  return graph.reshape(graph.node("Pad", {planes, pads}), {0, 3, size, size});
}

// The configuration of transformers' SamImageProcessor or Sam2ImageProcessor.
Metadata metadata_of(const models::SamConfig& config) {
  const models::Preprocessing from = preprocessing();
  const auto list = [](const std::vector<double>& values) {
    return str("[", values[0], ", ", values[1], ", ", values[2], "]");
  };
  const int64_t size = config.encoder.image_size();
  const bool pads = config.preprocessing == models::SamPreprocessing::segment_anything;
  const std::string sides = str("{\"height\": ", size, ", \"width\": ", size, "}");
  return {{"preprocessor_config.json",
           str("{\"image_processor_type\": \"Sam", pads ? "" : "2", "ImageProcessor\", \"do_resize\": true, \"size\": ",
               pads ? str("{\"longest_edge\": ", size, "}") : sides,
               ", \"resample\": 2, \"do_rescale\": true, \"rescale_factor\": ", from.rescale_factor,
               ", \"do_normalize\": true, \"image_mean\": ", list(*from.mean), ", \"image_std\": ", list(*from.std),
               pads ? ", \"do_pad\": true, \"pad_size\": " + sides : "", "}")}};
}

// Adds the outputs of the encoder for images [N, 3, S, S], whose operations it lowers.
void add_encoder_outputs(GraphBuilder& graph, Lowering& lowering, const models::Sam& sam, const Tensor& images,
                         int64_t batch) {
  const models::SamEncoderConfig& config = sam.config().encoder;
  const bool high_quality = sam.config().decoder.high_quality;  // its decoder computes the features
  const ops::Recorder recorder;
  const models::SamTrunk trunk = high_quality ? sam.image_encoder().trunk_outputs(images) : models::SamTrunk();
  const models::SamImage image =
      high_quality ? models::SamImage{sam.image_encoder().neck(trunk.output), {}} : sam.encode(images);
  for (const ops::RecordedOperation& operation : recorder.operations()) lowering.lower(operation);
  const auto planes = [&](const Tensor& map) { return lowering.value_of(map.permute({0, 3, 1, 2})); };
  graph.add_output(planes(image.embedding),
                   {"image_embeddings", DType::f32, {batch, config.out_chans, config.grid, config.grid}});
  if (high_quality) {
    graph.add_output(
        lowering.value_of(trunk.intermediate.unsqueeze(0)),
        {"interm_embeddings", DType::f32, {1, batch, config.grid, config.grid, trunk.intermediate.size(3)}});
  }
  const std::vector<models::SamFeature> features = sam.features();
  for (size_t i = 0; i < image.features.size(); ++i) {
    const Shape& shape = features[i].shape;
    graph.add_output(planes(image.features[i]), {features[i].name, DType::f32, {batch, shape[2], shape[0], shape[1]}});
  }
}

PendingFiles write_encoder(const models::Sam& sam, const std::filesystem::path& path, const OnnxOptions& options) {
  const models::SamEncoderConfig& config = sam.config().encoder;
  const int64_t size = config.image_size(), batch = options.dynamic_batch ? kBatch : 1;
  const bool pixels = options.input == Input::uint8;
  const bool pads = sam.config().preprocessing == models::SamPreprocessing::segment_anything;
  const int64_t height = pads ? kHeight : size, width = pads ? kWidth : size;
  GraphBuilder graph;
  graph.add_input(
      {kImage, pixels ? DType::u8 : DType::f32, pixels ? Ints{batch, height, width, 3} : Ints{batch, 3, size, size}});
  const Tensor images = Tensor::empty({kRecordedBatch, 3, size, size}, DType::f32, Device::meta);
  Lowering lowering(graph, parameter_names(sam), {.opset = options.opset, .dynamic_batch = options.dynamic_batch});
  const auto normalised = [&] {
    const std::string planes = normalised_pixels(graph, kImage, preprocessing(), 3);
    return pads ? padded(graph, planes, size) : planes;
  };
  lowering.bind_batch(images, pixels ? normalised() : kImage);
  add_encoder_outputs(graph, lowering, sam, images, batch);
  return write_model(graph, path, metadata_of(sam.config()), options);
}

}  // namespace

SamOnnxFiles sam_onnx_files(const std::filesystem::path& path) {
  std::filesystem::path encoder = path, decoder = path;
  return {encoder.replace_extension(".encoder.onnx"), decoder.replace_extension(".decoder.onnx")};
}

void export_sam_onnx(const models::Sam& sam, const std::filesystem::path& path, const SamOnnxOptions& options) {
  check(options.file);
  const models::SamConfig& config = sam.config();
  if (config.encoder.in_chans != 3) {
    throw Error("ONNX", "an image encoder of RGB images", str(config.encoder.in_chans, " channels"));
  }
  if (config.preprocessing == models::SamPreprocessing::medsam) {
    throw Error("ONNX", "the preprocessing of Segment Anything or SAM 2", models::name_of(config.preprocessing));
  }
  const SamOnnxFiles files = sam_onnx_files(path);
  PendingFiles pending = write_encoder(sam, files.encoder, options.file);
  if (config.has_decoder) {
    append(pending, write_model(sam_decoder_graph(sam, options), files.decoder, metadata_of(config), options.file));
  }
  commit(pending);
}

}  // namespace vitrail::onnx
