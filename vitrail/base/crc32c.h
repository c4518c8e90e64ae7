// SPDX-License-Identifier: Apache-2.0
#pragma once
// CRC-32C (Castagnoli; RFC 3720, appendix B.4): what iSCSI, TFRecord and our checkpoints use.
#include <cstddef>
#include <cstdint>

namespace vitrail {

// The checksum of `data`, continued from that of what came before it (0: nothing).
uint32_t crc32c(const void* data, size_t size, uint32_t before = 0);

}  // namespace vitrail
