// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/load.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/hub/hub.h"
#include "vitrail/models/bundled.h"
#include "vitrail/models/check_weights.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/models/dinov3_files_internal.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/missing_model_internal.h"
#include "vitrail/models/model_bytes.h"
#include "vitrail/models/registry.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/models/semantic/semantic_segmenter.h"
#include "vitrail/models/text_tower.h"
#include "vitrail/models/unsupported_families_internal.h"
#include "vitrail/models/with_file_internal.h"
#include "vitrail/weights/adapted_params_internal.h"
#include "vitrail/weights/checkpoint_params_internal.h"
#include "vitrail/weights/hub_layout.h"
#include "vitrail/weights/model_choice_internal.h"
#include "vitrail/weights/model_prefixes_internal.h"
#include "vitrail/weights/tensor_advice_internal.h"

namespace vitrail::models {
namespace fs = std::filesystem;
namespace {

constexpr const char* kConfigInMemory = "config.json";  // for errors

// Some folders of the hub have the files of OpenCLIP beside those of transformers.
bool is_of_open_clip(const fs::path& weights) { return weights.filename().string().starts_with("open_clip_"); }

// The path of a file or folder, a bundled model or a model of the hub, which is downloaded if necessary.
fs::path local_path(const fs::path& given) {
  if (look_up(given) != PathKind::missing) return given;
  if (const auto bundled = find_bundled(given.string())) return *bundled;
  if (const auto name = hub::parse_name(given.string())) return hub::fetch(*name);
  throw Error(given.string(), "a model's folder or weights file, or the name of a bundled model or one of the hub",
              describe_missing_model(given.string()));
}

struct Found {
  std::vector<fs::path> weights;
  fs::path config;
};

Found find_files(const fs::path& given) {
  fs::path path = local_path(given);
  const bool of_folder = is_folder(path);
  // A training run has its best weights in the folder model.
  if (of_folder && !is_present(path / "config.json") && is_present(path / "model" / "config.json")) path /= "model";
  const fs::path folder = of_folder ? path : path.parent_path();
  Found files{{path}, folder / "config.json"};
  if (of_folder) files.weights = weights::find_hub_weights(path);
  if (path.string().ends_with(".index.json")) files.weights = weights::shards_of(path);
  if (is_of_open_clip(files.weights.front()) || !is_present(files.config)) {
    if (const fs::path config = folder / "open_clip_config.json"; is_present(config)) files.config = config;
  }
  return files;
}

// What a model is opened from: files, or texts and bytes in memory.
struct Source {
  std::vector<fs::path> weights;
  fs::path config;
  const weights::Checkpoint& first;
  const ModelBytes* memory = nullptr;  // null: files

  std::shared_ptr<weights::Checkpoint> checkpoint(size_t state_dict) const {
    return std::make_shared<weights::Checkpoint>(
        first.state_dicts().size() <= 1 ? first : weights::Checkpoint::open(weights, state_dict));
  }
};

Source source_of(const ModelFiles& files) { return {files.weights, files.config, files.first}; }

// The configuration of a file, of a registered architecture, or of OpenCLIP's name.
ModelConfig named_config(const std::string& file_or_name, const std::string& family_args) {
  const fs::path path = file_or_name;
  const bool is_file = is_present(path), name = !is_file && find_architecture(file_or_name);
  const auto open_clip = is_file ? std::nullopt : open_clip_model(file_or_name);
  if (!is_file && !name && !open_clip) refuse_unknown_name(file_or_name);
  const std::string text = open_clip ? *open_clip
                           : name    ? "{\"architecture\": \"" + file_or_name + "\"}"
                                     : read_text_file(path);
  const PreprocessorFile preprocessor = is_file ? preprocessor_file(path.parent_path()) : PreprocessorFile{};
  return parse_model_config(text, preprocessor.text, file_or_name, family_args, preprocessor.path);
}

ModelConfig config_of(const Source& files, const LoadOptions& options, const std::string& family_args) {
  if (options.config) return named_config(*options.config, family_args);
  if (const ModelBytes* const memory = files.memory) {
    if (!memory->config.empty())
      return parse_model_config(memory->config, memory->preprocessor, kConfigInMemory, family_args,
                                "preprocessor_config.json");
    throw Error(memory->weights.where, "the text of a config.json, or the name of an architecture", "neither");
  }
  if (!is_present(files.config)) {
    throw Error(files.weights.front().string(),
                "a config.json beside it, or --config FILE (or a registered architecture's name)", "neither");
  }
  const PreprocessorFile preprocessor = preprocessor_file(files.config.parent_path());
  return parse_model_config(read_regular_text_file(files.config), preprocessor.text, files.config.string(), family_args,
                            preprocessor.path);
}

// Segment Anything is known by its tensors: the authors' files have no config.json.
void refuse_segment_anything(const weights::Checkpoint& checkpoint) {
  if (!is_segment_anything(checkpoint)) return;
  const std::string later = later_segment_anything(checkpoint);
  refuse_unsupported_family(later.empty() ? "sam" : later, checkpoint.path());
}

void refuse_semantic_segmenter(const weights::Checkpoint& checkpoint) {
  if (is_semantic_segmenter(checkpoint))
    throw Error(checkpoint.path(), "an image model",
                "a semantic segmenter, which `vitrail segment` and the task segment run");
}

// The index beside a file that is one of its shards; nothing for other files.
std::optional<fs::path> index_of_shard(const fs::path& file) {
  for (const char* name : {"model.safetensors.index.json", "pytorch_model.bin.index.json"}) {
    const fs::path index = file.parent_path() / name;
    if (!is_present(index)) continue;
    const std::vector<std::string> shards = weights::shard_names(index);
    if (shards.size() > 1 && std::ranges::find(shards, file.filename().string()) != shards.end()) return index;
  }
  return std::nullopt;
}

// A state dict whose values are arrays of another library, or tensors in parts.
void refuse_objects(const weights::Checkpoint& checkpoint) {
  if (!checkpoint.tensors().empty() || checkpoint.objects().empty()) return;
  const auto& [name, type] = *checkpoint.objects().begin();
  const bool numpy = type.starts_with("numpy."), distributed = type.find("rebuild_wrapper_subclass") != type.npos;
  throw Error(checkpoint.path(), "tensors",
              str(checkpoint.objects().size(), " values that are none, such as ", name.substr(0, 80), ", an object of ",
                  type.substr(0, 80),
                  numpy         ? "; save torch.from_numpy(value) of each"
                  : distributed ? "; save value.full_tensor() of each"
                                : ""));
}

// The error for names of no family.
[[noreturn]] void throw_unknown_names(const weights::Checkpoint& checkpoint, const Error& error) {
  refuse_objects(checkpoint);
  std::string text = checkpoint.path() + ": " + error.what();
  for (const std::string& line : weights::advise_merging(checkpoint.names(), true)) text += "\n    " + line;
  throw Error(text);
}

// A key map of the user is for the names as they are in the file.
weights::KeyMap choose_key_map(weights::Checkpoint& checkpoint, const ModelConfig& config, const LoadOptions& options,
                               const Source& files, size_t prefix) {
  const std::string choice = options.key_map.value_or(config.key_map);
  if (choice.empty()) {
    checkpoint.strip_model_prefix(prefix);
    try {
      return weights::KeyMap::detect(checkpoint.names());
    } catch (const Error& error) {
      const bool may_be_shard = files.weights.size() == 1 && !files.memory;
      if (const auto index = may_be_shard ? index_of_shard(files.weights.front()) : std::nullopt) {
        throw Error(checkpoint.path(), "all shards: " + index->string() + ", or its folder", "one of several shards");
      }
      throw_unknown_names(checkpoint, error);
    }
  }
  if (choice.front() == '{') return weights::KeyMap::parse(choice, "key_map");
  for (const std::string& name : weights::KeyMap::builtin_names()) {
    if (name != choice) continue;
    checkpoint.strip_model_prefix(prefix);
    return weights::KeyMap::builtin(name);
  }
  if (files.memory && !options.key_map && !options.config) {
    throw Error(str(kConfigInMemory, ": key_map"), "a built-in key map, or one in JSON", "\"" + choice + "\"");
  }
  // One of config.json is relative to that file.
  const fs::path folder = fs::path(options.config.value_or(files.config.string())).parent_path();
  const fs::path path = options.key_map ? fs::path(choice) : folder / choice;  // an absolute choice stays
  return weights::KeyMap::parse(options.key_map ? read_text_file(path) : read_regular_text_file(path), path.string());
}

void check_image_side(int64_t side, int64_t patch, const std::string& where) {
  if (side >= patch && side <= kMaxPixels && side % patch == 0) return;
  const int64_t last = std::max(kMaxPixels / patch - 1, int64_t{1});  // the larger of both is within the limit, too
  const int64_t below = std::clamp(side / patch, int64_t{1}, last) * patch;
  throw Error(where + ": image size", str("multiples of the patch size ", patch, ", at most ", kMaxPixels),
              str(side, " (near are ", below, " and ", below + patch, ")"));
}

// Another image size than the model's: its positions are interpolated.
void apply_image_size(ModelConfig& config, const std::array<int64_t, 2>& size, const std::string& where) {
  const auto& patch = config.vit.patch_size;
  for (size_t axis = 0; axis < 2; ++axis) {
    check_image_side(size[axis], config.vit.allow_remainder ? 1 : patch[axis], where);
  }
  set_input_size(size, config.preprocessing);
  config.vit.dynamic_img_size = true;
}

// The key map of the text tower; the image tower's leaves its keys out.
std::optional<weights::KeyMap> find_text_key_map(const weights::Checkpoint& checkpoint) {
  for (const std::string& name : weights::KeyMap::builtin_names()) {
    if (!name.ends_with("_text")) continue;
    weights::KeyMap map = weights::KeyMap::builtin(name);
    if (map.recognises(checkpoint.names())) return map;
  }
  return std::nullopt;
}

// A number of a dual model that is at most `max`.
double scalar_of(const weights::Checkpoint& checkpoint, const std::string& name, double max) {
  const Tensor value = checkpoint.tensor(name);
  const std::string where = checkpoint.path() + ": " + name;
  if (value.numel() != 1) throw Error(where, "one number", value.shape().to_string());
  const double number = value.to(DType::f64).item<double>();
  if (!std::isfinite(number) || number > max) throw Error(where, str("a finite number up to ", max), str(number));
  return number;
}

}  // namespace

weights::KeyMap text_key_map(const weights::Checkpoint& checkpoint) {
  if (auto map = find_text_key_map(checkpoint)) return *std::move(map);
  throw Error(checkpoint.path(), "the tensors of a text tower beside the image tower's, as config.json says", "none");
}

ModelConfig read_config(const std::string& file_or_name, const std::optional<std::array<int64_t, 2>>& image_size) {
  ModelConfig config = named_config(file_or_name, "");
  if (image_size) apply_image_size(config, *image_size, file_or_name);
  return config;
}

namespace {

weights::Checkpoint open_quietly(const std::vector<fs::path>& shards) {
  const WarningPause pause;
  return weights::Checkpoint::open(shards);
}

}  // namespace

ModelFiles::ModelFiles(const fs::path& given) : path(given) {
  Found found = find_files(given);
  weights = std::move(found.weights);
  config = std::move(found.config);
  first = open_quietly(weights);
}

std::shared_ptr<weights::Checkpoint> ModelFiles::checkpoint(size_t state_dict) const {
  return source_of(*this).checkpoint(state_dict);
}

namespace {

// What differs between an adapted model's configuration and the base's must be what an adapter can change.
void require_base(const ModelConfig& base, const ModelConfig& adapted, const std::string& where) {
  const VisionTransformerConfig &a = base.vit, &b = adapted.vit;
  if (a.patch_size == b.patch_size && a.depth == b.depth && a.embed_dim == b.embed_dim && a.in_chans == b.in_chans)
    return;
  const auto text = [](const VisionTransformerConfig& vit) {
    return str("patches of ", vit.patch_size[0], ", depth ", vit.depth, ", width ", vit.embed_dim, ", ", vit.in_chans,
               " channels");
  };
  throw Error(where, "an adapter of this model: " + text(a), "one of another: " + text(b));
}

void take_head(const weights::NativeAdapter& adapter, ModelConfig& config) {
  const auto head = adapter.tensors.find("head.weight");
  if (head == adapter.tensors.end() || head->second.rank() != 2) return;
  if (head->second.size(0) == config.vit.num_classes) return;
  config.vit.num_classes = head->second.size(0);
  config.labels.clear();
  config.descriptions.clear();
}

// Adds the adapter and takes what the adapted model's configuration says.
void adapt(OpenedModel& opened, const std::string& path, const LoadOptions& options) {
  opened.adapter = std::make_shared<const weights::LoraAdapter>(weights::read_lora_adapter(path));
  const std::string& file = opened.adapter->path;
  const fs::path config_file = fs::path(file).parent_path() / kConfigInMemory;
  ModelConfig& config = opened.config;
  if (!is_present(config_file))
    return take_head(weights::native_adapter(*opened.adapter, *opened.checkpoint, opened.key_map), config);
  ModelConfig adapted = named_config(config_file.string(), "");
  require_base(config, adapted, file);
  const std::array<int64_t, 2> size = options.image_size.value_or(adapted.vit.img_size);
  const auto base_size = config.vit.img_size;
  config = std::move(adapted);
  config.vit.img_size = base_size;
  if (size != base_size) apply_image_size(config, size, file);
  apply_overrides(options.preprocessing, config.vit.in_chans, size, config.preprocessing);
}

OpenedModel open_choice(const Source& files, const LoadOptions& options, const weights::ModelChoice& choice) {
  // The weights come first: a file of another program needs no config.json to be named.
  const auto checkpoint = files.checkpoint(choice.state_dict);
  refuse_segment_anything(*checkpoint);
  refuse_semantic_segmenter(*checkpoint);
  ModelConfig config = config_of(files, options, "");
  weights::KeyMap key_map = choose_key_map(*checkpoint, config, options, files, choice.prefix);
  if (!key_map.model_args().empty()) config = config_of(files, options, key_map.model_args());
  if (options.image_size) apply_image_size(config, *options.image_size, checkpoint->path());
  apply_overrides(options.preprocessing, config.vit.in_chans, config.vit.img_size, config.preprocessing);
  if (key_map.name() == kDinov3Files) {
    read_dinov3_files(*checkpoint, config.vit);
    if (options.config && find_architecture(*options.config)) config.vit.global_pool = GlobalPool::token;
  }
  OpenedModel opened{std::move(config), checkpoint, std::move(key_map), files.weights.front().parent_path()};
  if (options.adapter) adapt(opened, *options.adapter, options);
  return opened;
}

// Why one of a file's models does not fit the configuration; nothing if it does.
std::string misfit_of(const Source& files, const LoadOptions& options, const weights::ModelChoice& choice) {
  const WarningPause pause;
  try {
    check_weights(open_choice(files, options, choice));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The beginning of an error's list, in one line.
std::string shortened(const std::string& text) {
  constexpr size_t kMaxWords = 24;
  std::istringstream words(text);
  std::string line, word;
  for (size_t i = 0; i < kMaxWords && words >> word; ++i) line += (line.empty() ? "" : " ") + word;
  return words >> word ? line + " …" : line;
}

// The first of a file's models that fits the configuration; the first of all if none does, whose error is then seen.
weights::ModelChoice choose_model(const Source& files, const LoadOptions& options) {
  const std::vector<weights::ModelChoice> models = weights::find_models(files.weights, files.first);
  if (models.size() == 1) return models.front();
  const std::string misfit = misfit_of(files, options, models.front());
  if (misfit.empty()) return models.front();
  const auto fits = [&](const weights::ModelChoice& model) { return misfit_of(files, options, model).empty(); };
  const auto found = std::find_if(models.begin() + 1, models.end(), fits);
  if (found == models.end()) return models.front();
  const std::string path = files.weights.front().string() + ": ";
  const std::string reason = shortened(misfit.starts_with(path) ? misfit.substr(path.size()) : misfit);
  warn(str(path, "does not use the weights under ", weights::quoted_list({models.front().name}), ": ", reason));
  return *found;
}

}  // namespace

OpenedModel open_model(const ModelFiles& files, const LoadOptions& options) {
  const Source source = source_of(files);
  return open_choice(source, options, choose_model(source, options));
}

weights::Checkpoint open_checkpoint(const ModelBytes& bytes) {
  weights::Checkpoint checkpoint = weights::Checkpoint::open(bytes.weights);
  if (checkpoint.format() == "safetensors") return checkpoint;
  throw Error(bytes.weights.where, "the bytes of a safetensors file", checkpoint.format());
}

OpenedModel open_model(const ModelBytes& bytes, const LoadOptions& options) {
  const weights::Checkpoint checkpoint = open_checkpoint(bytes);
  const Source source{{bytes.weights.where}, kConfigInMemory, checkpoint, &bytes};
  return open_choice(source, options, choose_model(source, options));
}

std::map<std::string, int64_t> field_sizes(const VisionTransformerConfig& config) {
  return {{"img_size", config.img_size[0]},
          {"patch_size", config.patch_size[0]},
          {"in_chans", config.in_chans},
          {"num_classes", config.num_classes},
          {"embed_dim", config.embed_dim},
          {"depth", config.depth},
          {"num_heads", config.num_heads},
          {"head_dim", config.head_dim.value_or(config.embed_dim / config.num_heads)},
          {"mlp_hidden", mlp_hidden_of(config)},
          {"reg_tokens", config.reg_tokens}};
}

namespace {

std::optional<weights::NativeAdapter> native_adapter_of(const OpenedModel& opened) {
  if (!opened.adapter) return std::nullopt;
  return weights::native_adapter(*opened.adapter, *opened.checkpoint, opened.key_map);
}

weights::AdaptedParams with_adapter(weights::CheckpointParams& params, const OpenedModel& opened,
                                    const std::optional<weights::NativeAdapter>& adapter) {
  return {params, adapter ? &*adapter : nullptr, opened.adapter ? opened.adapter->path : ""};
}

}  // namespace

VisionTransformer build_model(const OpenedModel& opened, weights::Int8Weights int8) {
  weights::CheckpointParams file(opened.checkpoint, opened.key_map, field_sizes(opened.config.vit), DType::f32, int8);
  const auto adapter = native_adapter_of(opened);
  weights::AdaptedParams params = with_adapter(file, opened, adapter);
  return with_file(opened.checkpoint->path(), [&] {
    VisionTransformer model(opened.config.vit, ParamSource(params));
    params.finish();
    return model;
  });
}

void check_weights(const OpenedModel& opened) {
  using weights::CheckpointParams;
  const auto shapes = [&](const weights::KeyMap& map, const weights::FieldSizes& sizes) {
    return CheckpointParams(opened.checkpoint, map, sizes, DType::f32, weights::Int8Weights::dequantize,
                            CheckpointParams::Content::shapes);
  };
  CheckpointParams file = shapes(opened.key_map, field_sizes(opened.config.vit));
  const auto adapter = native_adapter_of(opened);
  weights::AdaptedParams images = with_adapter(file, opened, adapter);
  with_file(opened.checkpoint->path(), [&] {
    const VisionTransformer model(opened.config.vit, ParamSource(images));
    images.finish();
  });
  if (!has_text_tower(opened)) return;
  CheckpointParams texts = shapes(text_key_map(*opened.checkpoint), {});
  const TextTransformer tower(*opened.config.text, ParamSource(texts));
  texts.finish();
}

bool has_text_tower(const OpenedModel& opened) { return opened.config.text && find_text_key_map(*opened.checkpoint); }

TextTower build_text_tower(const OpenedModel& opened) {
  const weights::Checkpoint& checkpoint = *opened.checkpoint;
  if (!opened.config.text) {
    const bool has_texts =
        std::ranges::any_of(checkpoint.names(), [](const auto& n) { return n.starts_with("text."); });
    throw Error(checkpoint.path(), "a dual model with a text tower (CLIP, SigLIP)",
                has_texts ? "one with a text tower of another library (BERT, T5)"
                          : "an image model alone (\"" + opened.config.architecture + "\")");
  }
  weights::CheckpointParams params(opened.checkpoint, text_key_map(checkpoint));
  constexpr double kMaxScale = 88, kMaxBias = 1e38;  // f32 holds e⁸⁸
  TextTower tower{TextTransformer(*opened.config.text, ParamSource(params)),
                  scalar_of(checkpoint, "logit_scale", kMaxScale)};
  if (checkpoint.has("logit_bias")) tower.logit_bias = scalar_of(checkpoint, "logit_bias", kMaxBias);
  params.finish();
  return tower;
}

}  // namespace vitrail::models
