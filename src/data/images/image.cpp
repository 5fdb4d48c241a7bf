#include "data/images/image.h"

#include <jpeglib.h>
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstring>

#include "base/error.h"
#include "data/files/inflate.h"

namespace echelon::data {

namespace {

void check_extent(std::uint64_t height, std::uint64_t width, std::string_view name) {
  constexpr std::uint64_t side = 16384, area = 64 << 20;
  if (height == 0 || width == 0 || height > side || width > side || height * width > area)
    bad_input("{}: a picture of {} x {} pixels; at most {} a side and {} million in all are read", name, width, height,
              side, area >> 20);
}

std::uint8_t grey_of(const std::uint8_t* rgb) {  // the luma of ITU-R 601, in 16-bit fixed point
  return static_cast<std::uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

// --- PNG, through libpng's simplified interface: it reports errors instead of jumping ---

struct PngImage {
  png_image image{};
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image); }
};

ImageExtent decode_png(std::span<const std::byte> file, std::string_view name, int channels, Scratch& pixels) {
  PngImage png;
  png_image& image = png.image;
  if (!png_image_begin_read_from_memory(&image, file.data(), file.size()))
    bad_input("{}: not a PNG picture: {}", name, image.message);
  check_extent(image.height, image.width, name);
  // Eight bits; colour only if the file has it; with alpha if the file has it, so that libpng blends nothing in.
  image.format &= PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA;
  const bool colour = image.format & PNG_FORMAT_FLAG_COLOR, alpha = image.format & PNG_FORMAT_FLAG_ALPHA;
  const std::size_t found = (colour ? 3 : 1) + (alpha ? 1 : 0), count = std::size_t{image.height} * image.width;
  const auto wanted = static_cast<std::size_t>(channels);
  pixels.resize(count * std::max(found, wanted));
  auto* const p = reinterpret_cast<std::uint8_t*>(pixels.data());
  if (!png_image_finish_read(&image, nullptr, p, 0, nullptr))
    bad_input("{}: a corrupt PNG picture: {}", name, image.message);
  const auto convert = [&](std::size_t i) {
    const std::array<std::uint8_t, 3> rgb = {p[i * found], p[i * found + (colour ? 1 : 0)],
                                             p[i * found + (colour ? 2 : 0)]};
    if (wanted == 1)
      p[i] = colour ? grey_of(rgb.data()) : rgb[0];
    else
      std::memcpy(p + i * wanted, rgb.data(), 3);
  };
  if (found > wanted)
    for (std::size_t i = 0; i < count; ++i) convert(i);
  else if (found < wanted)  // growing in place: from the end
    for (std::size_t i = count; i-- > 0;) convert(i);
  pixels.resize(count * wanted);
  return {image.height, image.width};
}

// --- JPEG. libjpeg reports errors by calling back; it must not return, so it jumps: only C objects live across. ---

struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  std::array<char, JMSG_LENGTH_MAX> message;
};

[[noreturn]] void jpeg_failed(j_common_ptr info) {
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message.data());
  std::longjmp(errors->jump, 1);
}

void jpeg_warned(j_common_ptr info, int level) {
  if (level < 0) ++info->err->num_warnings;  // corrupt data that libjpeg would paper over with grey
  if (level < 0) info->err->format_message(info, reinterpret_cast<JpegErrors*>(info->err)->message.data());
}

void jpeg_silent(j_common_ptr) {}

// A progressive file may hold any number of tiny scans, each of which costs a pass over the picture.
struct JpegProgress {
  jpeg_progress_mgr manager;
};
void jpeg_progress(j_common_ptr info) {
  if (info->is_decompressor && reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > 200) {
    auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
    std::strcpy(errors->message.data(), "more than 200 scans");
    std::longjmp(errors->jump, 1);
  }
}

// Cyan, magenta, yellow and black of a row as colours, or grey. Adobe's files say how much ink is not there.
void light_of_inks(const std::uint8_t* inks, std::size_t width, bool adobe, int channels, std::uint8_t* out) {
  const auto light = [&](std::uint8_t ink) { return adobe ? std::uint32_t{ink} : 255u - ink; };
  for (std::size_t x = 0; x < width; ++x, inks += 4, out += channels) {
    std::array<std::uint8_t, 3> rgb;
    for (std::size_t c = 0; c < 3; ++c)
      rgb[c] = static_cast<std::uint8_t>((light(inks[c]) * light(inks[3]) + 127) / 255);
    if (channels == 1)
      *out = grey_of(rgb.data());
    else
      std::memcpy(out, rgb.data(), 3);
  }
}

struct JpegResult {
  bool good = false;
  std::uint32_t height = 0, width = 0;
};

// First call with pixels == null: reads the header only. Plain C inside.
JpegResult run_jpeg(std::span<const std::byte> file, int channels, std::uint8_t* pixels, JpegErrors& errors) {
  jpeg_decompress_struct jpeg{};
  JpegProgress progress{};
  JpegResult result;
  jpeg.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = jpeg_failed;
  errors.manager.emit_message = jpeg_warned;
  errors.manager.output_message = jpeg_silent;
  errors.message[0] = '\0';
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_decompress(&jpeg);
    return {};
  }
  jpeg_create_decompress(&jpeg);
  progress.manager.progress_monitor = jpeg_progress;
  jpeg.progress = &progress.manager;
  jpeg.mem->max_memory_to_use = 1l << 30;
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&jpeg, TRUE);
  if (pixels) {
    const bool inks = jpeg.num_components == 4;
    jpeg.out_color_space = inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&jpeg);
    JSAMPARRAY four = nullptr;  // a row of inks
    if (inks)
      four = jpeg.mem->alloc_sarray(reinterpret_cast<j_common_ptr>(&jpeg), JPOOL_IMAGE, 4 * jpeg.output_width, 1);
    while (jpeg.output_scanline < jpeg.output_height) {
      JSAMPROW row =
          pixels + std::size_t{jpeg.output_scanline} * jpeg.output_width * static_cast<std::size_t>(channels);
      jpeg_read_scanlines(&jpeg, inks ? four : &row, 1);
      if (inks) light_of_inks(four[0], jpeg.output_width, jpeg.saw_Adobe_marker, channels, row);
    }
    jpeg_finish_decompress(&jpeg);
  }
  result = {errors.manager.num_warnings == 0, jpeg.image_height, jpeg.image_width};
  jpeg_destroy_decompress(&jpeg);
  return result;
}

ImageExtent decode_jpeg(std::span<const std::byte> file, std::string_view name, int channels, Scratch& pixels) {
  JpegErrors errors;
  const JpegResult header = run_jpeg(file, channels, nullptr, errors);
  if (!header.good) bad_input("{}: not a JPEG picture: {}", name, errors.message.data());
  check_extent(header.height, header.width, name);
  pixels.resize(std::size_t{header.height} * header.width * static_cast<std::size_t>(channels));
  if (!run_jpeg(file, channels, reinterpret_cast<std::uint8_t*>(pixels.data()), errors).good)
    bad_input("{}: a corrupt JPEG picture: {}", name, errors.message.data());
  return {header.height, header.width};
}

bool is_jpeg(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{0xFF} && file[1] == std::byte{0xD8};
}
bool is_png(std::span<const std::byte> file) { return file.size() >= 4 && std::memcmp(file.data(), "\x89PNG", 4) == 0; }

std::uint32_t big_endian(std::span<const std::byte> file, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint32_t>(file[at + i]);
  return value;
}

// Chunk after chunk: length, name, content, check sum of name and content.
void check_png(std::span<const std::byte> file, std::string_view name) {
  constexpr std::size_t signature = 8, around = 12;
  for (std::size_t at = signature; at + around <= file.size();) {
    const std::size_t length = big_endian(file, at);
    if (length > file.size() - at - around) break;
    const auto named = file.subspan(at + 4, 4 + length);
    if (crc32_of(named) != big_endian(file, at + 8 + length))
      bad_input("{}: a corrupt PNG picture: the check sum of the part at byte {} is wrong", name, at);
    if (std::memcmp(named.data(), "IEND", 4) == 0) return;
    at += around + length;
  }
  bad_input("{}: a corrupt PNG picture: it ends in the middle, after {} bytes", name, file.size());
}

}  // namespace

void check_image(std::span<const std::byte> file, std::string_view name) {
  if (is_png(file)) return check_png(file, name);
  if (!is_jpeg(file)) bad_input("{}: neither a PNG nor a JPEG picture ({} bytes)", name, file.size());
  for (std::size_t at = file.size() - 1; at > 2; --at)
    if (file[at] == std::byte{0xD9} && file[at - 1] == std::byte{0xFF}) return;
  bad_input("{}: a corrupt JPEG picture: it ends in the middle, after {} bytes", name, file.size());
}

ImageExtent decode_image(std::span<const std::byte> file, std::string_view name, int channels, Scratch& pixels) {
  invariant(channels == 1 || channels == 3, "a picture is grey or coloured");
  if (is_jpeg(file)) return decode_jpeg(file, name, channels, pixels);
  if (is_png(file)) return decode_png(file, name, channels, pixels);
  bad_input("{}: neither a PNG nor a JPEG picture ({} bytes)", name, file.size());
}

std::vector<std::byte> encode_png(std::span<const std::uint8_t> pixels, ImageExtent extent, int channels) {
  invariant(static_cast<std::int64_t>(pixels.size()) == extent.height * extent.width * channels,
            "a picture has all its pixels");
  PngImage png;
  png.image.width = static_cast<png_uint_32>(extent.width);
  png.image.height = static_cast<png_uint_32>(extent.height);
  png.image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t bytes = 0;
  if (!png_image_write_get_memory_size(png.image, bytes, 0, pixels.data(), 0, nullptr))
    fail("PNG: {}", png.image.message);
  std::vector<std::byte> file(bytes);
  if (!png_image_write_to_memory(&png.image, file.data(), &bytes, 0, pixels.data(), 0, nullptr))
    fail("PNG: {}", png.image.message);
  file.resize(bytes);
  return file;
}

}  // namespace echelon::data
