// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/mae/files.h"

#include <map>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/configured_files_internal.h"
#include "vitrail/models/with_file_internal.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::models {
namespace {

// The layers of transformers' decoder are named as the encoder's behind "decoder_", and transformers 5 writes
// "decoder_encoder.layer" for "decoder_layers".
constexpr const char* kVitMaeKeys = R"~({"name": "huggingface_vit_mae", "base": "huggingface_vit",
  "base_prefix": [["vit\\.", "encoder."], ["decoder\\.decoder_", "decoder."]], "rules": [
    {"from": "decoder\\.decoder_pred\\.weight", "to": "decoder.pred.weight",
     "rearrange": "(p c) d -> (c p) d", "sizes": {"c": CHANNELS}},
    {"from": "decoder\\.decoder_pred\\.bias", "to": "decoder.pred.bias",
     "rearrange": "(p c) -> (c p)", "sizes": {"c": CHANNELS}}]})~";

constexpr const char* kAuthorsMaeKeys = R"~({"name": "mae_with_decoder", "rules": [
    {"from": "decoder_pred\\.weight", "to": "decoder.pred.weight",
     "rearrange": "(p c) d -> (c p) d", "sizes": {"c": CHANNELS}},
    {"from": "decoder_pred\\.bias", "to": "decoder.pred.bias",
     "rearrange": "(p c) -> (c p)", "sizes": {"c": CHANNELS}},
    {"from": "mask_token", "to": "decoder.mask_token"},
    {"from": "decoder_(.*)", "to": "decoder.$1"},
    {"from": "(.*)", "to": "encoder.$1"}]})~";

weights::KeyMap mae_key_map(MaeNames names, int64_t channels) {
  std::string text = names == MaeNames::authors ? kAuthorsMaeKeys : kVitMaeKeys;
  const std::string word = "CHANNELS";
  for (size_t at = 0; (at = text.find(word, at)) != text.npos;) text.replace(at, word.size(), std::to_string(channels));
  return weights::KeyMap::parse(text, "key map");
}

bool has_authors_mae_names(const weights::Checkpoint& checkpoint) {
  return checkpoint.has("decoder_pred.weight") && checkpoint.has("patch_embed.proj.weight");
}

bool has_vit_mae_names(const weights::Checkpoint& checkpoint) {
  return checkpoint.has("decoder.decoder_pred.weight") &&
         checkpoint.has("vit.embeddings.patch_embeddings.projection.weight");
}

// pred.weight [C·p, D] or pred.bias [C·p], from (c, y, x) to (y, x, c).
Tensor with_channels_last(const Tensor& pred, int64_t channels) {
  const int64_t pixels = pred.size(0) / channels;
  const Tensor parts = pred.view({channels, pixels, pred.numel() / pred.size(0)});
  return parts.permute({1, 0, 2}).reshape(pred.shape());
}

// A block's tensor, "3.attn.qkv.weight", under the names of transformers.
void add_block_tensor(const std::string& list, const std::string& name, const Tensor& tensor, NamedTensors& to) {
  static const std::map<std::string, std::string> kLayers{{"norm1", "layernorm_before"},
                                                          {"norm2", "layernorm_after"},
                                                          {"attn.proj", "attention.output.dense"},
                                                          {"mlp.fc1", "intermediate.dense"},
                                                          {"mlp.fc2", "output.dense"}};
  const size_t dot = name.find('.'), end = name.rfind('.');
  const std::string block = list + name.substr(0, dot + 1), layer = name.substr(dot + 1, end - dot - 1);
  const std::string parameter = name.substr(end);
  if (layer != "attn.qkv") return void(to.emplace_back(block + kLayers.at(layer) + parameter, tensor));
  const int64_t rows = tensor.size(0) / 3;
  int64_t first = 0;
  for (const char* part : {"query", "key", "value"}) {
    to.emplace_back(block + "attention.attention." + part + parameter, tensor.narrow(0, first, rows));
    first += rows;
  }
}

// Adds a tensor with the name of transformers, or with three of them.
void add_of_transformers(const std::string& name, const Tensor& tensor, NamedTensors& to) {
  static const std::map<std::string, std::string> kLists{{"encoder.blocks.", "vit.encoder.layer."},
                                                         {"decoder.blocks.", "decoder.decoder_layers."}};
  static const std::map<std::string, std::string> kNames{
      {"encoder.cls_token", "vit.embeddings.cls_token"},
      {"encoder.pos_embed", "vit.embeddings.position_embeddings"},
      {"encoder.patch_embed.proj.", "vit.embeddings.patch_embeddings.projection."},
      {"encoder.norm.", "vit.layernorm."},
      {"decoder.mask_token", "decoder.mask_token"},
      {"decoder.", "decoder.decoder_"}};
  for (const auto& [native, list] : kLists) {
    if (name.starts_with(native)) return add_block_tensor(list, name.substr(native.size()), tensor, to);
  }
  // The longest beginning of a name comes last.
  for (auto known = kNames.rbegin(); known != kNames.rend(); ++known) {
    const auto& [native, theirs] = *known;
    if (name.starts_with(native)) return void(to.emplace_back(theirs + name.substr(native.size()), tensor));
  }
  throw Error(name, "a parameter of ViTMAEForPreTraining", "another one");
}

std::string authors_mae_name(const std::string& name) {
  if (name == "decoder.mask_token") return "mask_token";
  const bool of_encoder = name.starts_with("encoder.");
  return (of_encoder ? "" : "decoder_") + name.substr(name.find('.') + 1);
}

}  // namespace

bool is_masked_autoencoder(const ModelFiles& files) {
  return has_authors_mae_names(files.first) || has_vit_mae_names(files.first);
}

MaskedAutoencoderFiles open_masked_autoencoder(const ModelFiles& files) {
  MaskedAutoencoderFiles opened{.checkpoint = files.checkpoint(), .key_map = {}};
  const weights::Checkpoint& checkpoint = *opened.checkpoint;
  const bool of_authors = has_authors_mae_names(checkpoint);
  if (!of_authors && !has_vit_mae_names(checkpoint)) {
    throw Error(checkpoint.path(), "a masked autoencoder with its decoder: ViTMAEForPreTraining, or the authors' file",
                "other tensors");
  }
  const std::string source = is_present(files.config) ? files.config.string() : checkpoint.path();
  opened.config = with_file(source, [&] {
    if (is_present(files.config)) {
      const PreprocessorFile preprocessor = preprocessor_file(files.config.parent_path());
      opened.config_json = read_regular_text_file(files.config);
      opened.preprocessor_json = preprocessor.text;
      return read_mae_config(opened.config_json, source, preprocessor.text, preprocessor.path);
    }
    if (!of_authors) throw Error(source, "a config.json of transformers beside it", "none");
    return mae_config_of_file(checkpoint);
  });
  opened.key_map = mae_key_map(of_authors ? MaeNames::authors : MaeNames::transformers, opened.config.encoder.in_chans);
  return opened;
}

MaskedAutoencoder load_masked_autoencoder(const MaskedAutoencoderFiles& files) {
  return load_configured<MaskedAutoencoder>(files);
}

NamedTensors mae_tensors(const MaskedAutoencoder& model, MaeNames names) {
  NamedTensors tensors;
  for (const auto& [name, parameter] : model.named_parameters()) {
    const Tensor tensor = parameter.detach();
    const bool of_pixels = name.starts_with("decoder.pred.");
    const Tensor ordered = of_pixels ? with_channels_last(tensor, model.config().encoder.in_chans) : tensor;
    if (names == MaeNames::transformers) {
      add_of_transformers(name, ordered, tensors);
    } else {
      tensors.emplace_back(authors_mae_name(name), ordered);
    }
  }
  return tensors;
}

void write_masked_autoencoder(const std::filesystem::path& folder, const MaskedAutoencoder& model) {
  const std::string config = write_mae_config(model.config());
  weights::write_hub_folder(folder, config, mae_tensors(model, MaeNames::transformers),
                            write_mae_processor(model.config()));
}

}  // namespace vitrail::models
