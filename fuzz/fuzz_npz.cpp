// SPDX-License-Identifier: Apache-2.0
// Fuzzes the readers of .npy files, gzip, zip entries (stored and deflated) and .npz files.  Every input must give
// arrays or a vitrail::Error.
#include "vitrail/base/error.h"
#include "vitrail/base/gzip_internal.h"
#include "vitrail/base/zip_internal.h"
#include "vitrail/weights/npy_internal.h"
#include "vitrail/weights/npz_internal.h"

namespace {

constexpr uint64_t kMaxContent = 1 << 20;

template <class Read>
void attempt(Read read) {
  try {
    read();
  } catch (const vitrail::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  const auto* first = reinterpret_cast<const std::byte*>(data);
  const weights::FileBytes bytes = weights::FileBytes::hold({first, first + size}, "fuzz");
  attempt([&] {
    const weights::NpyHeader header = weights::read_npy_header(bytes.data, "fuzz");
    weights::read_npy(bytes, 0, size, header).clone();
  });
  attempt([&] { gunzip(bytes.data, kMaxContent, "fuzz"); });
  attempt([&] {
    const ZipReader zip(bytes.data, "fuzz");
    for (const ZipEntry& entry : zip.entries()) attempt([&] { zip.read(entry, kMaxContent); });
  });
  attempt([&] {
    const auto file = weights::open_npz(bytes, ZipReader(bytes.data, "fuzz"));
    for (size_t i = 0; i < file->tensors().size(); ++i) {
      if (file->tensors()[i].shape.numel() < int64_t{1} << 17) attempt([&] { file->tensor(i).clone(); });
    }
  });
  return 0;
}
