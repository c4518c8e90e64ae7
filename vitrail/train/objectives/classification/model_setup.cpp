// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/model_setup_internal.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/imagenet_labels.h"
#include "vitrail/models/load.h"
#include "vitrail/models/model_args_internal.h"
#include "vitrail/models/registry.h"
#include "vitrail/nn/mimetic.h"
#include "vitrail/nn/patch_resampling.h"
#include "vitrail/nn/positional_encoding.h"

namespace vitrail::train {
namespace {

using models::ModelConfig;
using models::VisionTransformerConfig;

// The class names of a model; empty if unknown.
std::vector<std::string> class_names(const ModelConfig& config) {
  if (!config.labels.empty()) return config.labels;
  if (!config.descriptions.empty()) return config.descriptions;
  const auto imagenet = data::imagenet_class_names();
  if (models::has_imagenet_classes(config)) return {imagenet.begin(), imagenet.end()};
  return {};
}

// Lower case, with spaces instead of underscores: the form in which class names are compared.
std::string normalized(std::string name) {
  for (char& c : name) c = c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

// Whether the names are "0", "1", …, as those of classes without names.
bool are_placeholders(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] != std::to_string(i)) return false;
  }
  return true;
}

// For each of `count` classes, the row of the checkpoint's head for the class of the same name; −1: none.  Without
// names, classes are matched by index if their number is the same.
std::vector<int64_t> head_rows(const ModelConfig& source, const std::vector<std::string>& classes, int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count), -1);
  if (source.vit.projection_head) return rows;  // its rows are no classes
  const std::vector<std::string> known = class_names(source);
  if (known.empty() || are_placeholders(known) || are_placeholders(classes)) {
    if (source.vit.num_classes != count) return rows;
    for (int64_t i = 0; i < count; ++i) rows[static_cast<size_t>(i)] = i;
    return rows;
  }
  std::map<std::string, int64_t> row_of;
  for (size_t i = 0; i < known.size(); ++i) row_of.emplace(normalized(known[i]), static_cast<int64_t>(i));
  if (known.size() == 1000) {  // ImageNet folders are often named by WordNet ids
    const auto ids = data::imagenet_wordnet_ids();
    for (size_t i = 0; i < ids.size(); ++i) row_of.emplace(ids[i], static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto found = row_of.find(normalized(classes[i]));
    if (found != row_of.end()) rows[i] = found->second;
  }
  return rows;
}

std::array<int64_t, 2> grid_of(const VisionTransformerConfig& config) {
  return {config.img_size[0] / config.patch_size[0], config.img_size[1] / config.patch_size[1]};
}

// For each block of the model, the checkpoint's block that initialises it.  A shallower model takes the first, the last
// and evenly spaced blocks between them.
std::vector<int64_t> blocks_to_keep(int64_t source_depth, int64_t depth) {
  std::vector<int64_t> kept(static_cast<size_t>(depth));
  for (int64_t i = 0; i < depth; ++i) {
    const bool fewer = depth > 1 && depth < source_depth;
    kept[static_cast<size_t>(i)] = fewer ? (2 * i * (source_depth - 1) + depth - 1) / (2 * (depth - 1)) : i;
  }
  return kept;
}

// Copies the parameters of a checkpoint's model to another model, adapts their shapes and records notes and problems.
class WeightTransfer {
 public:
  WeightTransfer(const ModelConfig& source, const models::VisionTransformer& from, const ModelConfig& target,
                 const std::vector<std::string>& classes)
      : source_(source),
        target_(target),
        rows_(head_rows(source, classes, target.vit.num_classes)),
        blocks_(blocks_to_keep(source.vit.depth, target.vit.depth)) {
    for (const nn::NamedTensor& parameter : from.named_parameters()) available_[parameter.name] = parameter.tensor;
    if (is_shallower()) note_blocks();
  }

  // Initialises one parameter of the target model.
  void initialize(const nn::NamedTensor& parameter) {
    const std::string& name = parameter.name;
    const Tensor& to = parameter.tensor;
    if (name.starts_with("head.") || name.starts_with("head_dist.")) return copy_head(name, to);
    Tensor from = take(source_name(name));
    if (!from.defined() && name.starts_with("fc_norm.")) from = take("norm." + name.substr(8));
    if (!from.defined() && name.starts_with("norm.")) from = take("fc_norm." + name.substr(5));
    if (!from.defined()) return problem(name, "not in the checkpoint");
    if (name == "pos_embed") from = resample_positions(from, to);
    if (name == "patch_embed.proj.weight") from = resample_patches(from, to);
    if (!(from.shape() == to.shape())) return problem(name, str(from.shape(), " instead of ", to.shape()));
    to.copy_(from);
  }

  bool has_new_classes() const { return new_classes_; }  // once the head is initialised

  // Returns the notes.  Throws one Error that lists all problems.
  std::vector<std::string> finish(const std::string& where) {
    for (const auto& [name, tensor] : available_) {
      // A new head, interpolated positions and skipped blocks may leave parameters of the checkpoint unused.
      const bool replaced = name.starts_with("head") || name.starts_with("pre_logits") || name == "pos_embed" ||
                            is_of_skipped_block(name);
      if (!used_.contains(name) && !replaced) problem(name, "not in the model");
    }
    if (problems_.empty()) return notes_;
    std::string text = where + ": the checkpoint does not fit the recipe's model:";
    for (const std::string& line : problems_) text += "\n  " + line;
    throw Error(text);
  }

 private:
  static constexpr std::string_view kBlocks = "blocks.";

  bool is_shallower() const { return target_.vit.depth < source_.vit.depth; }

  void note_blocks() { notes_.push_back(str("blocks: ", join(blocks_), " of the checkpoint's ", source_.vit.depth)); }

  // The number of the block of "blocks.NUMBER.…".
  static size_t block_of(const std::string& name) { return std::stoul(name.substr(kBlocks.size())); }

  bool is_of_skipped_block(const std::string& name) const {
    return name.starts_with(kBlocks) && std::ranges::count(blocks_, static_cast<int64_t>(block_of(name))) == 0;
  }

  // The name in the checkpoint of a parameter of the model.
  std::string source_name(const std::string& name) const {
    if (!name.starts_with(kBlocks)) return name;
    return str(kBlocks, blocks_[block_of(name)], name.substr(name.find('.', kBlocks.size())));
  }

  Tensor take(const std::string& name) {
    const auto found = available_.find(name);
    if (found == available_.end()) return {};
    used_[name] = true;
    return found->second;
  }

  void problem(const std::string& name, const std::string& what) { problems_.push_back(name + ": " + what); }

  // Copies the rows of the classes that the checkpoint knows; the others keep their random initialisation.
  void copy_head(const std::string& name, const Tensor& to) {
    const Tensor from = take(name);
    const auto kept = std::count_if(rows_.begin(), rows_.end(), [](int64_t row) { return row >= 0; });
    const bool fits = from.defined() && (to.rank() == 1 || from.size(1) == to.size(1));
    for (size_t i = 0; fits && i < rows_.size(); ++i) {
      if (rows_[i] >= 0) to.select(0, static_cast<int64_t>(i)).copy_(from.select(0, rows_[i]));
    }
    if (!name.ends_with(".weight")) return;
    const std::string part = name.substr(0, name.size() - 7);
    const auto classes = static_cast<int64_t>(rows_.size());
    new_classes_ = !fits || kept < classes;
    if (!fits || kept == 0) {
      notes_.push_back(str(part, ": new, ", classes, " classes"));
    } else if (kept < classes) {
      notes_.push_back(str(part, ": ", kept, " of ", classes, " classes from the checkpoint, the others new"));
    } else if (source_.vit.num_classes != classes) {
      notes_.push_back(str(part, ": ", classes, " of the checkpoint's ", source_.vit.num_classes, " classes"));
    }
  }

  Tensor resample_positions(const Tensor& from, const Tensor& to) {
    const auto old_grid = grid_of(source_.vit), new_grid = grid_of(target_.vit);
    const int64_t prefix = from.size(1) - old_grid[0] * old_grid[1];
    if (old_grid == new_grid || to.size(1) - new_grid[0] * new_grid[1] != prefix) return from;
    notes_.push_back(
        str("positions: interpolated from ", old_grid[0], "×", old_grid[1], " to ", new_grid[0], "×", new_grid[1]));
    return nn::resample_positions(from, prefix, old_grid, new_grid, target_.vit.pos_interp);
  }

  Tensor resample_patches(Tensor from, const Tensor& to) {
    if (from.size(1) == 3 && to.size(1) == 1) {  // greyscale: all colour channels would be equal
      Tensor sum = Tensor::zeros({from.size(0), 1, from.size(2), from.size(3)});
      const int64_t inner = from.size(2) * from.size(3);
      const Tensor dense = from.contiguous();
      for (int64_t i = 0; i < dense.numel(); ++i)
        sum.data<float>()[i / (3 * inner) * inner + i % inner] += dense.data<float>()[i];
      from = sum;
      notes_.push_back("patch embedding: summed over the colour channels, for greyscale images");
    }
    const std::array<int64_t, 2> size{to.size(2), to.size(3)};
    if (from.size(2) == size[0] && from.size(3) == size[1]) return from;
    notes_.push_back(
        str("patch embedding: resampled from ", from.size(2), "×", from.size(3), " to ", size[0], "×", size[1]));
    return nn::resample_patch_weight(from, size);
  }

  const ModelConfig &source_, &target_;
  std::vector<int64_t> rows_;                // head_rows()
  std::vector<int64_t> blocks_;              // blocks_to_keep()
  std::map<std::string, Tensor> available_;  // the checkpoint's parameters by name
  std::map<std::string, bool> used_;
  std::vector<std::string> notes_, problems_;
  bool new_classes_ = false;
};

// The result of a function, whose errors name the part of the recipe that has the model.
template <class Function>
auto in_recipe(const Function& function) {
  try {
    return function();
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with("model")) throw;
    throw Error(str("model: ", error.what()));
  }
}

void read_args(const ModelRecipe& recipe, VisionTransformerConfig& config) {
  const auto args = models::Json::parse(recipe.model_args.empty() ? "{}" : recipe.model_args);
  in_recipe([&] { models::read_model_args(models::JsonFields(args, "model"), config); });
}

models::VisionTransformer random_model(const ModelConfig& config, RandomParams& params) {
  return in_recipe([&] { return models::VisionTransformer(config.vit, ParamSource(params)); });
}

// Guards ModelRecipe::opened: threads may have copies of one recipe, as the processes of a run.
std::mutex opened_mutex;

// The checkpoint `recipe.init`, opened once.
std::shared_ptr<const models::OpenedModel> source_of(const ModelRecipe& recipe) {
  const std::lock_guard lock(opened_mutex);
  std::shared_ptr<const models::OpenedModel>& opened =
      (*recipe.opened)[{recipe.init, recipe.config, recipe.key_map, recipe.adapter}];
  if (!opened) opened = std::make_shared<const models::OpenedModel>(open_source(recipe, recipe.init));
  return opened;
}

// A later run with the recipe reads the files as they then are.
void forget_opened(const ModelRecipe& recipe) {
  const std::lock_guard lock(opened_mutex);
  recipe.opened->clear();
}

}  // namespace

void set_classifier(VisionTransformerConfig& config, int64_t classes) {
  config.num_classes = classes;
  config.projection_head = false;
  config.head_bias.reset();
}

ModelConfig model_config(const ModelRecipe& recipe, const std::vector<std::string>& classes,
                         const ModelConfig* source) {
  ModelConfig config;
  if (source) config = *source;
  if (!recipe.architecture.empty()) {
    const models::Architecture* row = models::find_architecture(recipe.architecture);
    if (!row) throw Error("model.architecture", "a registered name", "\"" + recipe.architecture + "\"");
    config.vit = row->config;
  }
  config.architecture = !recipe.architecture.empty() ? recipe.architecture : source ? source->architecture : "vit";
  const auto count = static_cast<int64_t>(classes.size());
  set_classifier(config.vit, count);
  config.text.reset();
  read_args(recipe, config.vit);
  if (config.vit.num_classes != count)
    throw Error("model.num_classes", str(count, ", the classes of the data"), str(config.vit.num_classes));
  config.labels = classes;
  config.descriptions.clear();
  config.tag.clear();
  config.key_map.clear();
  return config;
}

void refuse_adapter(const ModelRecipe& recipe, const std::string& kind) {
  if (!recipe.adapter.empty()) throw Error("model.adapter", "none for " + kind + " in model.init", recipe.adapter);
}

models::OpenedModel open_source(const ModelRecipe& recipe, const models::ModelFiles& files) {
  models::LoadOptions load;
  if (!recipe.config.empty()) load.config = recipe.config;
  if (!recipe.key_map.empty()) load.key_map = recipe.key_map;
  if (!recipe.adapter.empty()) load.adapter = recipe.adapter;
  models::OpenedModel opened = models::open_model(files, load);
  models::refuse_regression(opened.config, recipe.init);
  return opened;
}

VisionTransformerConfig architecture_of(const ModelRecipe& recipe) {
  VisionTransformerConfig config;
  if (!recipe.init.empty()) config = source_of(recipe)->config.vit;
  if (!recipe.architecture.empty()) config = models::find_architecture(recipe.architecture)->config;
  read_args(recipe, config);
  return config;
}

models::Preprocessing preprocessing_of(const DataRecipe& recipe, const ModelConfig& config) {
  models::Preprocessing result = config.preprocessing;
  models::use_unit_range(result);  // rule timm has no rescale_factor
  result.rule = models::ResizeRule::timm;
  result.input_size = config.vit.img_size;
  if (!recipe.preset.empty()) models::apply_preset(recipe.preset, result);
  if (!recipe.mean.empty()) result.mean = recipe.mean;
  if (!recipe.std.empty()) result.std = recipe.std;
  if (!recipe.interpolation.empty()) result.interpolation = recipe.interpolation;
  if (recipe.crop_pct) result.crop_pct = recipe.crop_pct;
  const std::vector<double> half(static_cast<size_t>(config.vit.in_chans), 0.5);
  if (!result.mean) result.mean = half;
  if (!result.std) result.std = half;
  if (!result.interpolation) result.interpolation = "bicubic";
  if (!result.crop_pct) result.crop_pct = 1.0;
  for (auto* values : {&*result.mean, &*result.std}) {  // RGB statistics for a model of greyscale images
    if (values->size() == 3 && config.vit.in_chans == 1) *values = {((*values)[0] + (*values)[1] + (*values)[2]) / 3};
  }
  models::check_preprocessing(result, config.vit.in_chans, "data");
  return result;
}

namespace {

// Initialises pos_embed with the fixed sine-cosine table for the patches and zeros for the prefix tokens, as MAE does.
void init_sincos_positions(const models::VisionTransformer& model) {
  const VisionTransformerConfig& vit = model.config();
  if (vit.pos_embed != models::PositionEmbedding::learned)
    throw Error("model.positions", "a model with pos_embed \"learn\"", "another one");
  const Tensor positions = model.parameter("pos_embed");
  const Tensor table = nn::sincos_positions_2d(grid_of(vit), vit.embed_dim);
  const int64_t prefix = positions.size(1) - table.size(1);
  positions.narrow(1, 0, prefix).copy_(Tensor::zeros({1, prefix, vit.embed_dim}));
  positions.narrow(1, prefix, table.size(1)).copy_(table);
}

// Mimetic initialisation of attention (Trockman & Kolter 2023), with zero biases.
void init_mimetic(const models::VisionTransformer& model, const nn::MimeticOptions& options, uint64_t seed) {
  const VisionTransformerConfig& vit = model.config();
  for (int64_t layer = 0; layer < vit.depth; ++layer) {
    const std::string attention = str("blocks.", layer, ".attn.");
    nn::mimetic_attention(options, vit.num_heads, random_key(attention, seed),
                          model.parameter(attention + "qkv.weight"), model.parameter(attention + "proj.weight"));
    const Tensor proj_bias = model.parameter(attention + "proj.bias");
    proj_bias.copy_(Tensor::zeros(proj_bias.shape()));
    if (!vit.qkv_bias || vit.attn_type == models::AttentionType::eva) continue;  // q_bias and v_bias begin with zeros
    const Tensor qkv_bias = model.parameter(attention + "qkv.bias");
    qkv_bias.copy_(Tensor::zeros(qkv_bias.shape()));
  }
}

// What the model is trained for, whatever its start was.
void set_problem_type(ModelConfig& config, bool multi_label) {
  config.problem_type.reset();
  if (multi_label) config.problem_type = models::ProblemType::multi_label;
}

}  // namespace

PreparedModel prepare_model(const ModelRecipe& recipe, const std::vector<std::string>& classes, uint64_t seed,
                            bool multi_label) {
  RandomParams random(seed);
  if (recipe.init.empty()) {
    ModelConfig config = model_config(recipe, classes, nullptr);
    set_problem_type(config, multi_label);
    models::VisionTransformer model = random_model(config, random);
    if (recipe.positions == "sincos2d") init_sincos_positions(model);
    if (recipe.mimetic) init_mimetic(model, *recipe.mimetic, seed);
    return {std::move(config), std::move(model), {}};
  }
  const std::shared_ptr<const models::OpenedModel> opened = source_of(recipe);
  forget_opened(recipe);
  const models::VisionTransformer source = models::build_model(*opened);
  ModelConfig config = model_config(recipe, classes, &opened->config);
  set_problem_type(config, multi_label);
  models::VisionTransformer model = random_model(config, random);
  WeightTransfer transfer(opened->config, source, config, classes);
  for (const nn::NamedTensor& parameter : model.named_parameters()) transfer.initialize(parameter);
  std::vector<std::string> notes = transfer.finish(recipe.init);
  return {std::move(config), std::move(model), std::move(notes), transfer.has_new_classes()};
}

double patch_drop_rate(const Recipe& recipe, const VisionTransformerConfig& config, double epochs) {
  const std::optional<TokenDropRecipe>& drop = recipe.token_drop;
  return drop && epochs < drop->until * static_cast<double>(recipe.epochs) ? drop->rate : config.patch_drop_rate;
}

}  // namespace vitrail::train
