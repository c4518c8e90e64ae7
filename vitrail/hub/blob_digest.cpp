// SPDX-License-Identifier: Apache-2.0
#include "vitrail/hub/blob_digest_internal.h"

#include "vitrail/base/error.h"

namespace vitrail::hub {

std::unique_ptr<Digest> digest_of_blob(const std::string& name, int64_t size) {
  if (name.size() == 64) return make_sha256();
  auto digest = make_sha1();
  const std::string header = str("blob ", size);
  digest->update(header.c_str(), header.size() + 1);  // with the NUL
  return digest;
}

bool is_hex(const std::string& text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace vitrail::hub
