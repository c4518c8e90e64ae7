// SPDX-License-Identifier: Apache-2.0
#pragma once
// CRC-32C (Castagnoli polynomial; RFC 3720, appendix B.4), as in iSCSI and TFRecord.
#include <cstddef>
#include <cstdint>

namespace vitrail {

// Returns the CRC of `size` bytes.  `previous`: the CRC of the bytes before them, to compute a checksum in parts.
uint32_t crc32c(const void* data, size_t size, uint32_t previous = 0);

}  // namespace vitrail
