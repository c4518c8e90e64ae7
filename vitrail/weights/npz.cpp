// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/npz_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/weights/npy_internal.h"

namespace vitrail::weights {
namespace {

constexpr std::string_view kSuffix = ".npy";

class NpzFile : public TensorFile {
 public:
  NpzFile(const FileBytes& bytes, ZipReader zip) : bytes_(bytes), zip_(std::move(zip)) {
    format_ = "npz";
    for (const ZipEntry& entry : zip_.entries()) {
      if (entry.is_folder()) continue;
      const std::string where = bytes_.where + ": " + entry.name;
      if (!entry.name.ends_with(kSuffix)) throw Error(where, "only .npy arrays in an .npz", "another file");
      headers_.push_back(entry.method == 0 ? read_npy_header(zip_.stored(entry), where)
                                           : read_npy_header(zip_.read_beginning(entry, kMaxNpyHeader), where));
      entries_.push_back(&entry);
      const NpyHeader& header = headers_.back();
      tensors_.push_back({entry.name.substr(0, entry.name.size() - kSuffix.size()), header.dtype, header.shape,
                          header.unsupported_dtype});
    }
  }

  Tensor tensor(size_t index) const override {
    const ZipEntry& entry = *entries_[index];
    const std::string where = bytes_.where + ": " + entry.name;
    FileBytes bytes = bytes_;
    bytes.where = where;
    if (entry.method != 0) {
      bytes = FileBytes::hold(zip_.read(entry, entry.size), where);
      return read_npy(bytes, 0, bytes.data.size(), headers_[index]);
    }
    zip_.check_stored(entry);
    const auto content = zip_.stored(entry);
    return read_npy(bytes, static_cast<uint64_t>(content.data() - bytes_.data.data()), content.size(), headers_[index]);
  }

 private:
  FileBytes bytes_;
  ZipReader zip_;
  std::vector<const ZipEntry*> entries_;  // one per tensor, owned by zip_
  std::vector<NpyHeader> headers_;
};

}  // namespace

std::unique_ptr<TensorFile> open_npz(const FileBytes& bytes, ZipReader zip) {
  return std::make_unique<NpzFile>(bytes, std::move(zip));
}

bool is_npz(const ZipReader& zip) {
  return std::any_of(zip.entries().begin(), zip.entries().end(),
                     [](const ZipEntry& entry) { return entry.name.ends_with(kSuffix); });
}

}  // namespace vitrail::weights
