# How everything is compiled: warnings are errors, the release is hardened, sanitizers replace the hardening.
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Without -DNDEBUG: an assertion that fails in the field is worth more than the branch it costs.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g")

# A row or an options struct names what it sets; that the rest is zero is the point, not an oversight.
add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Wno-missing-field-initializers
                    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> -Werror)

if(WEFT_FUZZ AND NOT WEFT_SANITIZE)
  set(WEFT_SANITIZE address,undefined)
endif()
if(WEFT_SANITIZE)
  # Builds of their own that are made anew for every run: lines are enough for a report, and most of -O2 is not noticed.
  if(NOT WEFT_FUZZ)
    add_compile_options(-O1 -g1)
  endif()
  add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${WEFT_SANITIZE})
else()
  add_compile_options($<$<CONFIG:Release>:-D_FORTIFY_SOURCE=3> -fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    add_compile_options(-fcf-protection)
  endif()
  add_link_options(-Wl,-z,relro,-z,now)
endif()
# Where speed does not matter, the hub checks its own results (docs/schema.md).
if(WEFT_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL Debug)
  add_compile_definitions(WEFT_CHECK_RESULTS=1)
endif()
if(WEFT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
