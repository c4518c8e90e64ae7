// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/data_checks_internal.h"

#include <map>
#include <unordered_set>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/train/utf8_internal.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// Canonical paths of images.  The folders are few, so that each is looked up once.
class CanonicalPaths {
 public:
  std::string operator()(const fs::path& path) {
    const auto [folder, is_new] = folders_.try_emplace(path.parent_path().string());
    if (is_new) {
      std::error_code unknown;
      folder->second = fs::weakly_canonical(path.parent_path(), unknown);
      if (unknown) folder->second = path.parent_path();
    }
    return (folder->second / path.filename()).string();
  }

 private:
  std::map<std::string, fs::path> folders_;
};

template <class Body>
void for_each_sample(const Subset& subset, Body body) {
  for (int64_t i = 0; i < subset.size(); ++i) body(subset.samples.empty() ? i : subset.samples[static_cast<size_t>(i)]);
}

void warn_of_shared(const Subset& train, const Subset& subset, const char* what) {
  const int64_t shared = shared_with_training(train, subset);
  if (shared > 0)
    warn(str(shared, " of the ", subset.size(), " ", what, " images are training images, so that their accuracy says ",
             "nothing about new images"));
}

}  // namespace

void check_class_names(const std::vector<std::string>& classes, const std::string& where) {
  for (const std::string& name : classes) {
    if (!is_utf8(name))
      throw Error(where, "class names in UTF-8 (rename the folder)", "\"" + escape_non_utf8(name) + "\"");
  }
}

int64_t shared_with_training(const Subset& train, const Subset& subset) {
  if (!train.dataset || !subset.dataset) return 0;
  int64_t shared = 0;
  if (train.dataset == subset.dataset) {
    std::unordered_set<int64_t> samples;
    for_each_sample(train, [&](int64_t sample) { samples.insert(sample); });
    for_each_sample(subset, [&](int64_t sample) { shared += samples.contains(sample) ? 1 : 0; });
    return shared;
  }
  CanonicalPaths canonical;
  std::unordered_set<std::string> paths;
  for_each_sample(train, [&](int64_t sample) { paths.insert(canonical(train.dataset->path(sample))); });
  for_each_sample(subset,
                  [&](int64_t sample) { shared += paths.contains(canonical(subset.dataset->path(sample))) ? 1 : 0; });
  return shared;
}

void warn_of_shared_images(const RunData& data) {
  warn_of_shared(data.train, data.validation, "validation");
  warn_of_shared(data.train, data.test, "test");
}

}  // namespace vitrail::train
