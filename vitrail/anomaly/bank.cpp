// SPDX-License-Identifier: Apache-2.0
#include "vitrail/anomaly/bank.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "vitrail/base/digest_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/fields_json_internal.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/hub/hub.h"
#include "vitrail/models/bundled.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::anomaly {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBankFormat = "vitrail anomaly bank 1";
constexpr const char* kPatches = "patches";

std::string metadata_of(const weights::Checkpoint& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? "" : found->second;
}

bool is_there(const std::string& model) {
  std::error_code unknown;
  if (fs::exists(model, unknown) || models::find_bundled(model)) return true;
  const auto name = hub::parse_name(model);
  return name && hub::find_cached(*name);
}

}  // namespace

void describe_options(Fields& fields, BankOptions& options) {
  fields.choice({"method", "anomalydino: cosine distance; patchcore: Euclidean distance of means over 3 x 3 patches"},
                options.method, {{"anomalydino", Method::anomalydino}, {"patchcore", Method::patchcore}});
  fields.integers({"layers", "Blocks whose patch features are used, negative from the end"}, options.layers);
  fields.number({"coreset", "Share of the patches that the bank keeps; 1: all"}, options.coreset, {1e-4, 1});
  fields.integer({"seed", "Seed of the choice of patches"}, options.seed, 0);
  fields.integer({"rotations", "Angles of each good image, for objects in any orientation (AnomalyDINO: 8)"},
                 options.rotations, 1, 360);
  fields.choice(
      {"mask",
       "Leave out the background of objects, by the first principal component: of no image, of those that are "
       "tested (AnomalyDINO), or of all"},
      options.mask, {{"none", Mask::none}, {"test", Mask::test}, {"all", Mask::all}});
}

void describe_bank(Fields& fields, Bank& bank) {
  describe_options(fields, bank.options);
  fields.text({"model", "path or name of the model"}, bank.model);
  fields.text({"digest", "SHA-256 of its weights"}, bank.digest);
  fields.size({"image_size", "height and width of its input"}, bank.image_size);
  fields.integer({"images", "good images that the bank is made of"}, bank.images, 1);
  fields.number({"threshold", "largest score of held-out good images"}, bank.threshold);
  fields.number({"pixel_threshold", "largest distance of their patches"}, bank.pixel_threshold);
}

void write_bank(const fs::path& path, const Bank& bank) {
  weights::write_safetensors(path, {{kPatches, bank.patches}},
                             {{"format", kBankFormat}, {"bank", json_of_fields(describe_bank, bank).dump()}});
}

bool is_bank(const weights::Checkpoint& file) { return metadata_of(file, "format") == kBankFormat; }

Bank read_bank(const weights::Checkpoint& file) {
  Bank bank;
  const auto json = nlohmann::ordered_json::parse(metadata_of(file, "bank"), nullptr, false);
  if (!json.is_object()) throw Error(file.path(), "a bank of vitrail anomaly fit", "other metadata");
  std::vector<Error> problems;
  JsonFieldReader reader(json, file.path() + ": ", problems);
  describe_bank(reader, bank);
  reader.finish();
  if (!problems.empty()) throw problems.front();
  if (!file.has(kPatches)) throw Error(file.path(), str("the tensor ", kPatches), "none");
  bank.patches = file.tensor(kPatches);
  if (bank.patches.dtype() != DType::f32 || bank.patches.shape().rank() != 2 || bank.patches.size(0) == 0)
    throw Error(file.path() + ": patches", "f32 [n, width]", str(bank.patches.shape()));
  return bank;
}

std::string digest_of(const models::ModelFiles& files) {
  const auto digest = make_sha256();
  for (const fs::path& path : files.weights) {
    const MappedFile file(path);
    digest->update(file.bytes().data(), file.bytes().size());
  }
  return digest->hex();
}

models::ModelFiles find_model(const Bank& bank, const fs::path& where) {
  const fs::path beside = where.parent_path() / fs::path(bank.model).filename();
  const std::string path = is_there(bank.model) ? bank.model : beside.string();
  if (!is_there(path))
    throw Error(where.string(), "its model at " + bank.model + (beside == bank.model ? "" : " or " + beside.string()),
                "nothing there");
  models::ModelFiles files(path);
  if (digest_of(files) != bank.digest)
    throw Error(where.string(), "the weights that it was made with at " + path,
                "others; vitrail anomaly fit makes a bank for them");
  return files;
}

models::OpenedModel open_model(const models::ModelFiles& files,
                               const std::optional<std::array<int64_t, 2>>& image_size) {
  models::OpenedModel opened = models::open_model(files, {.image_size = image_size});
  models::Preprocessing& preprocessing = opened.config.preprocessing;
  if (preprocessing.rule == models::ResizeRule::timm) {
    preprocessing.crop_mode = "squash";
    preprocessing.crop_pct = 1;
  } else {
    preprocessing.resize_to = opened.config.vit.img_size;
    preprocessing.resize_shortest = preprocessing.resize_longest = std::nullopt;
    preprocessing.center_crop = std::nullopt;
  }
  return opened;
}

}  // namespace vitrail::anomaly
