#pragma once
// Bytes of numbers that change little, made small. The bytes are taken as 32-bit words; of each word the difference to
// the same word of an earlier version is kept (as an integer, small either way: zigzag), and the four bytes of all
// differences are stored apart, the highest first: signs and exponents, which hardly change, become long runs of equal
// bytes, which zstd then removes. Words whose earlier versions have the same exponent stand together, because their
// differences are alike; whoever unpacks has the earlier version, and with it the order. Nothing is lost: the words are
// integers here, whatever numbers they mean.
//
// After ModelHub (Miao, Li, Davis, Deshpande: "ModelHub: Towards Unified Data and Lifecycle Management for Deep
// Learning", ICDE 2017). Pure functions.

#include <cstddef>
#include <span>
#include <vector>

namespace echelon {

// `base`: the earlier version, of the same size; empty: there is none.
std::vector<std::byte> pack_words(std::span<const std::byte> bytes, std::span<const std::byte> base);

// What was packed; BadInput if `packed` is damaged or does not hold `size` bytes.
std::vector<std::byte> unpack_words(std::span<const std::byte> packed, std::span<const std::byte> base,
                                    std::size_t size);

}  // namespace echelon
