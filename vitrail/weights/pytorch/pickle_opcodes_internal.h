// SPDX-License-Identifier: Apache-2.0
#pragma once
// The opcodes of pickles, with the names of Python's pickletools.
namespace vitrail::weights::opcode {

// clang-format off
enum : unsigned char {
  kMark = '(', kStop = '.', kPop = '0', kPopMark = '1', kDup = '2', kProto = 0x80, kFrame = 0x95,
  // Constants
  kNone = 'N', kNewTrue = 0x88, kNewFalse = 0x89, kInt = 'I', kLong = 'L', kBinInt = 'J', kBinInt1 = 'K',
  kBinInt2 = 'M', kLong1 = 0x8a, kLong4 = 0x8b, kFloat = 'F', kBinFloat = 'G',
  // Text and bytes ("String": Python 2's str)
  kString = 'S', kUnicode = 'V', kBinUnicode = 'X', kShortBinUnicode = 0x8c, kBinUnicode8 = 0x8d, kBinString = 'T',
  kShortBinString = 'U', kBinBytes = 'B', kShortBinBytes = 'C', kBinBytes8 = 0x8e, kByteArray8 = 0x96,
  // Containers
  kEmptyList = ']', kList = 'l', kAppend = 'a', kAppends = 'e', kEmptyTuple = ')', kTuple = 't', kTuple1 = 0x85,
  kTuple2 = 0x86, kTuple3 = 0x87, kEmptyDict = '}', kDict = 'd', kSetItem = 's', kSetItems = 'u', kEmptySet = 0x8f,
  kAddItems = 0x90, kFrozenSet = 0x91,
  // The memo
  kPut = 'p', kBinPut = 'q', kLongBinPut = 'r', kMemoize = 0x94, kGet = 'g', kBinGet = 'h', kLongBinGet = 'j',
  // Names and calls
  kGlobal = 'c', kStackGlobal = 0x93, kReduce = 'R', kNewObj = 0x81, kNewObjEx = 0x92, kInst = 'i', kObj = 'o',
  kExt1 = 0x82, kExt2 = 0x83, kExt4 = 0x84, kBuild = 'b', kBinPersId = 'Q',
};
// clang-format on

}  // namespace vitrail::weights::opcode
