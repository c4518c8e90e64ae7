// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/sam.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "vitrail/base/crc32c_internal.h"
#include "vitrail/base/digest_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/load.h"
#include "vitrail/models/model_bytes.h"
#include "vitrail/models/sam/hiera_encoder.h"
#include "vitrail/models/sam/sam2_config_internal.h"
#include "vitrail/models/sam/tiny_vit.h"
#include "vitrail/models/unsupported_families_internal.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/weights/checkpoint_params_internal.h"

namespace vitrail::models {
namespace {

constexpr const char *kTransformers = "huggingface_sam", *kMobile = "mobile_sam", *kTimm = "timm_sam",
                     *kEncoder = "sam_encoder", *kSam2 = "sam2", *kTransformers2 = "huggingface_sam2";

bool is_sam2(const weights::KeyMap& map) { return map.name() == kSam2 || map.name() == kTransformers2; }

void read_norm_eps(const JsonFields& fields, const char* key, SamConfigDefaults& defaults) {
  const double norm_eps = fields.number(key).value_or(defaults.norm_eps);
  if (!(norm_eps > 0 && norm_eps < 1)) throw Error(fields.path(key), "a number in (0, 1)", str(norm_eps));
  defaults.norm_eps = norm_eps;
}

// transformers' config.json.
void read_transformers_config(const JsonFields& file, SamConfigDefaults& defaults) {
  const JsonFields vision = file.nested("vision_config"), decoder = file.nested("mask_decoder_config");
  require_defaults(vision, {{"hidden_act", "gelu"}});
  require_defaults(file.nested("prompt_encoder_config"), {{"hidden_act", "gelu"}, {"layer_norm_eps", 1e-6}});
  require_defaults(decoder, {{"hidden_act", "relu"}, {"layer_norm_eps", 1e-6}});
  JsonFields::assign(defaults.decoder_heads, decoder.integer("num_attention_heads"));
  read_norm_eps(vision, "layer_norm_eps", defaults);
  // Without windows all blocks are global, whatever the list says.
  if (vision.integer("window_size") != 0) defaults.global_blocks = vision.integers("global_attn_indexes");
}

// transformers' preprocessor_config.json, whose steps have to be Segment Anything's.
void check_processor(const PreprocessorFile& file, SamPreprocessing preprocessing) {
  const auto& [text, where] = file;
  if (text.empty()) return;
  const Json object = parse_json(text, where);
  require_defaults(JsonFields(object, where), {{"do_resize", true},
                                               {"do_rescale", true},
                                               {"do_normalize", true},
                                               {"resample", 2},  // bilinear
                                               {"rescale_factor", 1 / 255.0},
                                               {"image_mean", {0.485, 0.456, 0.406}},
                                               {"image_std", {0.229, 0.224, 0.225}}});
  if (preprocessing == SamPreprocessing::segment_anything)
    require_defaults(JsonFields(object, where), {{"do_pad", true}});
}

// config.json, if there is one, and preprocessor_config.json.
struct SamTexts {
  std::optional<std::string> config;
  std::string config_path;
  std::function<PreprocessorFile()> preprocessor;
};

SamTexts texts_beside(const std::filesystem::path& file) {
  const std::filesystem::path config = file.parent_path() / "config.json";
  SamTexts texts{{}, config.string(), [=] { return preprocessor_file(file.parent_path()); }};
  if (is_present(config)) texts.config = read_regular_text_file(config);
  return texts;
}

// From config.json, which beside Meta's checkpoints may be that of another model.
SamConfigDefaults defaults_of(const SamTexts& texts, const weights::KeyMap& map, const SamLoadOptions& options) {
  SamConfigDefaults defaults;
  if (is_sam2(map)) defaults.preprocessing = SamPreprocessing::segment_anything_2;
  if (texts.config) {
    const Json object = parse_json(*texts.config, texts.config_path);
    const JsonFields fields(object, texts.config_path);
    if (map.name() == kMobile) {
      defaults.image_size = fields.integer("image_size").value_or(defaults.image_size);
    } else if (map.name() == kTransformers) {
      read_transformers_config(fields, defaults);
    } else if (map.name() == kTransformers2) {
      read_sam2_config(fields, defaults);
    }
    if (fields.object().value("architecture", Json()) == "segment_anything") {
      if (const auto name = fields.text("preprocessing")) {
        defaults.preprocessing = sam_preprocessing_from_name(*name, fields.path("preprocessing"));
      }
      read_norm_eps(fields, "norm_eps", defaults);
      defaults.global_blocks = fields.integers("global_attn_indexes");
      if (is_sam2(map)) read_own_sam2_config(fields, defaults);
    }
  }
  if (map.name() == kTimm) defaults.norm_eps = kTimmSamNormEps;
  defaults.preprocessing = options.preprocessing.value_or(defaults.preprocessing);
  const bool of_transformers = map.name() == kTransformers || map.name() == kTransformers2;
  if (of_transformers && defaults.preprocessing != SamPreprocessing::medsam)
    check_processor(texts.preprocessor(), defaults.preprocessing);
  return defaults;
}

void refuse_later_generation(const weights::Checkpoint& checkpoint, const weights::KeyMap& map) {
  if (is_sam2(map)) return;
  const std::string later = later_segment_anything(checkpoint);
  if (later.empty()) return;
  if (later.starts_with("sam2")) {
    throw Error(checkpoint.path(), "the image encoder of SAM 2, image_encoder.trunk.* or vision_encoder.backbone.*",
                "a mask decoder of SAM 2 without it");
  }
  throw Error(checkpoint.path(), "a Segment Anything Model of the first two generations, HQ-SAM or MobileSAM",
              "\"" + later + "\": " + describe_unsupported_family(later));
}

// The statistics of images that some checkpoints have beside the weights, in up to 16 bits.
void check_statistics(const weights::Checkpoint& checkpoint, const std::string& name,
                      const std::array<float, 3>& expected) {
  constexpr float kRounding = 1.0f / 256;  // above bf16's
  if (!checkpoint.has(name)) return;
  const Tensor tensor = checkpoint.tensor(name).to(DType::f32).contiguous();
  const std::span values(tensor.data<float>(), static_cast<size_t>(tensor.numel()));
  const auto same = [](float value, float want) { return std::abs(value - want) <= kRounding * want; };
  if (std::ranges::equal(values, expected, same)) return;
  throw Error(checkpoint.path() + ": " + name, join(expected) + ", by which images are normalised",
              join_first(expected.size(), values));
}

// Whether a tensor has a part in what is computed once for an image.
bool computes_embedding(const std::string& native) {
  constexpr std::array kParts{
      "image_encoder.",        "mask_decoder.compress_vit_feat.", "mask_decoder.embedding_encoder.",
      "mask_decoder.conv_s0.", "mask_decoder.conv_s1.",           "no_mem_embed"};
  return std::ranges::any_of(kParts, [&](const char* part) { return native.starts_with(part); });
}

std::map<std::string, Shape> shapes_of(const weights::Checkpoint& checkpoint, const weights::KeyMap& map) {
  std::map<std::string, Shape> shapes;
  for (const weights::TensorInfo& tensor : checkpoint.tensors()) {
    const weights::KeyMatch match = map.match(tensor.name);
    if (!match.dropped()) shapes.emplace(match.native, tensor.shape);
  }
  return shapes;
}

// A digest of the tensors' names, types, shapes and values.
std::string digest_of(const std::vector<std::string>& names, const std::function<Tensor(size_t)>& tensor) {
  std::vector<std::string> lines(names.size());
  parallel_for_balanced(0, static_cast<int64_t>(names.size()), 1, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      const Tensor values = tensor(i).contiguous();
      const auto bytes = static_cast<size_t>(values.numel()) * size_of(values.dtype());
      lines[i] =
          str(names[i], " ", name_of(values.dtype()), " ", values.shape(), " ", crc32c(values.raw(), bytes), "\n");
    }
  });
  std::string text;
  for (const std::string& line : lines) text += line;
  return sha256(std::as_bytes(std::span(text)));
}

// The digest itself where the settings are those of Segment Anything.
std::string with_settings(const std::string& digest, SamPreprocessing preprocessing, double norm_eps) {
  std::string named = digest;
  if (preprocessing != SamPreprocessing::segment_anything) named += name_of(preprocessing);
  if (norm_eps != kSamNormEps) named += str(norm_eps);
  return named == digest ? digest : sha256(std::as_bytes(std::span(named)));
}

std::unique_ptr<SamEncoder> image_encoder_of(const SamEncoderConfig& config, const ParamSource& params) {
  if (config.hiera) return std::make_unique<SamHieraEncoder>(config, params);
  if (config.stages.empty()) return std::make_unique<SamImageEncoder>(config, params);
  return std::make_unique<SamTinyEncoder>(config, params);
}

// What an image encoder alone does not have.
template <class Part>
const Part& part_of(const std::optional<Part>& part, const Sam& sam) {
  if (part) return *part;
  throw Error(sam.path().empty() ? "model" : sam.path(), "a mask decoder, which makes masks of prompts",
              "an image encoder alone, which only makes embeddings");
}

}  // namespace

Sam::Sam(const SamConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      image_encoder_(image_encoder_of(config.encoder, params.child("image_encoder"))) {
  if (config.encoder.hiera)
    no_memory_ = params.get("no_mem_embed", {1, 1, config.encoder.out_chans}, nn::init::normal(0.02));
  if (!config.has_decoder) return;
  prompt_encoder_.emplace(config, params.child("prompt_encoder"));
  mask_decoder_.emplace(config, params.child("mask_decoder"));
}

SamImage Sam::encode(const Tensor& images) const {
  const SamMaps maps = image_encoder_->maps(images);
  SamImage image{maps.embedding, mask_decoder_ ? mask_decoder_->image_features(maps) : std::vector<Tensor>()};
  if (no_memory_.defined()) image.embedding = ops::add(image.embedding, no_memory_);
  return image;
}

std::vector<SamFeature> Sam::features() const {
  return mask_decoder_ ? mask_decoder_->features() : std::vector<SamFeature>();
}

std::vector<std::string> Sam::outer_layers() const {
  std::vector<std::string> layers;
  for (const std::string& layer : image_encoder_->outer_layers()) layers.push_back("image_encoder." + layer);
  if (config_.decoder.reads_fine_maps) layers.insert(layers.end(), {"mask_decoder.conv_s0", "mask_decoder.conv_s1"});
  return layers;
}

const SamPromptEncoder& Sam::prompt_encoder() const { return part_of(prompt_encoder_, *this); }
const SamMaskDecoder& Sam::mask_decoder() const { return part_of(mask_decoder_, *this); }

void Sam::visit(nn::Visitor& visitor) {
  visitor.parameter("no_mem_embed", no_memory_);
  visitor.child("image_encoder", static_cast<nn::Module&>(*image_encoder_));
  if (prompt_encoder_) visitor.child("prompt_encoder", static_cast<nn::Module&>(*prompt_encoder_));
  if (mask_decoder_) visitor.child("mask_decoder", static_cast<nn::Module&>(*mask_decoder_));
}

// Native names are the official ones, so that other keys are reported as they are in the file.
weights::KeyMap sam_key_map(const weights::Checkpoint& checkpoint) {
  for (const char* name : {kTransformers, kMobile, kTimm, kEncoder, kSam2, kTransformers2}) {
    const weights::KeyMap map = weights::KeyMap::builtin(name);
    if (map.recognises(checkpoint.names())) return map;
  }
  return weights::KeyMap::builtin("sam");
}

bool is_segment_anything(const ModelFiles& files) { return is_segment_anything(files.first); }

bool is_segment_anything(const weights::Checkpoint& checkpoint) {
  const auto has = [&](const char* end) {
    return std::ranges::any_of(checkpoint.names(), [&](const std::string& name) { return name.ends_with(end); });
  };
  return has("mask_decoder.iou_token.weight") || (has("blocks.0.attn.rel_pos_h") && has("neck.2.weight"));
}

std::string sam_encoder_digest(const ModelFiles& files, const SamLoadOptions& options) {
  const auto checkpoint = files.checkpoint();
  checkpoint->strip_model_prefix();
  const weights::KeyMap map = sam_key_map(*checkpoint);
  std::map<std::string, weights::TensorInfo> encoder;  // by native name
  for (const weights::TensorInfo& tensor : checkpoint->tensors()) {
    const weights::KeyMatch match = map.match(tensor.name);
    if (!match.dropped() && computes_embedding(match.native)) encoder.emplace(match.native, tensor);
  }
  std::vector<std::string> natives, names;
  for (const auto& [native, tensor] : encoder) {
    natives.push_back(native);
    names.push_back(tensor.name);
  }
  const std::string digest = digest_of(natives, [&](size_t i) { return checkpoint->tensor(names[i]); });
  const SamConfigDefaults settings = defaults_of(texts_beside(checkpoint->path()), map, options);
  const std::string computed = with_settings(digest, settings.preprocessing, settings.norm_eps);
  if (!is_sam2(map)) return computed;
  // Heads and windows are no shapes.
  const std::string both =
      computed + write_sam_config(sam_config(shapes_of(*checkpoint, map), checkpoint->path(), settings));
  return sha256(std::as_bytes(std::span(both)));
}

std::string sam_trunk_digest(const Sam& sam) {
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (const nn::NamedTensor& parameter : sam.image_encoder().named_parameters()) {
    if (parameter.name.starts_with("neck.")) continue;
    names.push_back(parameter.name);
    tensors.push_back(parameter.tensor);
  }
  const std::string digest = digest_of(names, [&](size_t i) { return tensors[i]; });
  return with_settings(digest, sam.config().preprocessing, sam.config().encoder.norm_eps);
}

namespace {

Sam build_sam(const std::shared_ptr<weights::Checkpoint>& checkpoint, const SamTexts& texts,
              const SamLoadOptions& options) {
  checkpoint->strip_model_prefix();
  const weights::KeyMap map = sam_key_map(*checkpoint);
  refuse_later_generation(*checkpoint, map);
  const SamConfig config =
      sam_config(shapes_of(*checkpoint, map), checkpoint->path(), defaults_of(texts, map, options));
  if (config.preprocessing == SamPreprocessing::segment_anything) {
    check_statistics(*checkpoint, "pixel_mean", kSamImageMean);
    check_statistics(*checkpoint, "pixel_std", kSamImageStd);
  }
  weights::CheckpointParams params(checkpoint, map);
  Sam sam(config, ParamSource(params));
  params.finish();
  return sam;
}

}  // namespace

Sam load_sam(const ModelFiles& files, const SamLoadOptions& options) {
  const auto checkpoint = files.checkpoint();
  return build_sam(checkpoint, texts_beside(checkpoint->path()), options);
}

Sam load_sam(const ModelBytes& bytes, const SamLoadOptions& options) {
  const auto checkpoint = std::make_shared<weights::Checkpoint>(open_checkpoint(bytes));
  SamTexts texts{{}, "config.json", [&] { return PreprocessorFile{bytes.preprocessor, "preprocessor_config.json"}; }};
  if (!bytes.config.empty()) texts.config = bytes.config;
  return build_sam(checkpoint, texts, options);
}

}  // namespace vitrail::models
