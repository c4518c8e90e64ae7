// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/dataset_identity_internal.h"

#include "vitrail/base/crc32c_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/train/run/image_sets_internal.h"

namespace vitrail::train {
namespace {

std::string version_of_image(const data::Dataset& dataset, int64_t i) {
  if (const auto time = dataset.modified_at(i)) return str(*time);
  try {
    return str(dataset.content_hash(i));
  } catch (const Error&) {
    return "unreadable";  // reported when it is decoded
  }
}

}  // namespace

std::string dataset_identity(const std::shared_ptr<const data::Dataset>& dataset) {
  RunData all;
  all.train = {dataset, {}, ""};
  const ImageSet set = image_sets(all).front();
  uint32_t versions = 0;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    const std::string version = version_of_image(*dataset, i);
    versions = crc32c(version.c_str(), version.size() + 1, versions);
  }
  return str(set.images, " images ", set.checksum, " ", versions);
}

}  // namespace vitrail::train
