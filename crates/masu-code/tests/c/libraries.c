/* Each library used through its own interface; what is printed is the same however it was linked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text that compresses, and never the same for long. */
static unsigned char *text(size_t size)
{
    unsigned char *bytes = malloc(size + 1);
    unsigned long state = 12345;
    for (size_t i = 0; i < size; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        bytes[i] = (unsigned char)("masu makes memory "[i % 18] + (state >> 62));
    }
    return bytes;
}

static void show(const char *name, const unsigned char *bytes, size_t size)
{
    unsigned long sum = 5381;
    for (size_t i = 0; i < size; i++)
        sum = sum * 33 + bytes[i];
    printf("%s: %zu bytes, %016lx\n", name, size, sum);
}

enum { SIZE = 300000 };

#if defined WITH_BZ2
#include <bzlib.h>
int main(void)
{
    char *packed = malloc(SIZE * 2), *back = malloc(SIZE);
    unsigned size = SIZE * 2, length = SIZE;
    int code = BZ2_bzBuffToBuffCompress(packed, &size, (char *)text(SIZE), SIZE, 9, 0, 30);
    show("packed", (unsigned char *)packed, size);
    code |= BZ2_bzBuffToBuffDecompress(back, &length, packed, size, 0, 0);
    show("back", (unsigned char *)back, length);
    int differs = memcmp(text(SIZE), back, SIZE);
    packed[size / 2] ^= 1;
    length = SIZE;
    printf("%s: %d, broken: %d\n", BZ2_bzlibVersion(), code, BZ2_bzBuffToBuffDecompress(back, &length, packed, size, 0, 0));
    return differs != 0;
}
#elif defined WITH_LZMA
#include <lzma.h>
int main(void)
{
    for (unsigned check = 0; check < 16; check++) {
        if (!lzma_check_is_supported((lzma_check)check))
            continue;
        unsigned char *packed = malloc(SIZE * 2), *back = malloc(SIZE);
        size_t size = 0, in = 0, out = 0;
        unsigned long limit = 1ul << 30;
        int code = lzma_easy_buffer_encode(6, (lzma_check)check, NULL, text(SIZE), SIZE, packed, &size, SIZE * 2);
        show("packed", packed, size);
        code |= lzma_stream_buffer_decode(&limit, 0, NULL, packed, &in, size, back, &out, SIZE);
        show("back", back, out);
        printf("%s: %d\n", lzma_version_string(), code);
    }
    /* Threads of the library's own. */
    lzma_stream stream = LZMA_STREAM_INIT;
    lzma_mt options = {.threads = 3, .preset = 1, .check = LZMA_CHECK_CRC64, .block_size = 65536};
    unsigned char *packed = malloc(SIZE * 2);
    int code = lzma_stream_encoder_mt(&stream, &options);
    stream.next_in = text(SIZE), stream.avail_in = SIZE, stream.next_out = packed, stream.avail_out = SIZE * 2;
    while (code == LZMA_OK)
        code = lzma_code(&stream, LZMA_FINISH);
    show("by threads", packed, stream.total_out);
    lzma_end(&stream);
    return code != LZMA_STREAM_END;
}
#elif defined WITH_PNG
#include <png.h>
int main(void)
{
    png_image image = {.version = PNG_IMAGE_VERSION, .width = 300, .height = 250, .format = PNG_FORMAT_RGBA};
    png_alloc_size_t size = SIZE * 2;
    unsigned char *file = malloc(size), *back = malloc(SIZE);
    int done = png_image_write_to_memory(&image, file, &size, 0, text(SIZE), 0, NULL);
    show("file", file, size);
    png_image read = {.version = PNG_IMAGE_VERSION};
    done += png_image_begin_read_from_memory(&read, file, size);
    read.format = PNG_FORMAT_RGBA;
    done += png_image_finish_read(&read, NULL, back, 0, NULL);
    show("back", back, PNG_IMAGE_SIZE(read));
    /* Errors leave by longjmp. */
    file[size / 2] ^= 1;
    png_image broken = {.version = PNG_IMAGE_VERSION};
    done += png_image_begin_read_from_memory(&broken, file, size);
    broken.format = PNG_FORMAT_GRAY;
    int is_read = png_image_finish_read(&broken, NULL, back, 0, NULL);
    printf("%s: %d, broken: %d %s\n", png_get_libpng_ver(NULL), done, is_read, broken.message);
    return done != 4;
}
#elif defined WITH_GMP
#include <gmp.h>
int main(void)
{
    mpz_t factorial, power, rest, root;
    mpz_inits(factorial, power, rest, root, NULL);
    mpz_fac_ui(factorial, 3000);
    mpz_ui_pow_ui(power, 3, 20011);
    mpz_mod(rest, power, factorial);
    mpz_sqrt(root, power);
    gmp_printf("%Zd\n%Zx\n", rest, root);
    mpz_gcd(rest, factorial, root);
    mpz_nextprime(rest, rest);
    gmp_printf("%Zd %d\n", rest, mpz_probab_prime_p(rest, 20));
    mpf_t wide;
    mpf_init2(wide, 2000);
    mpf_sqrt_ui(wide, 2);
    gmp_printf("%.500Ff %s\n", wide, gmp_version);
    return 0;
}
#elif defined WITH_CRYPTO
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
static void encrypt(const char *name)
{
    unsigned char out[SIZE + 64], tag[16], *in = text(SIZE);
    int size = 0, rest = 0;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int done = EVP_EncryptInit_ex2(context, cipher, in, in + 64, NULL);
    done += EVP_EncryptUpdate(context, out, &size, in, SIZE) + EVP_EncryptFinal_ex(context, out + size, &rest);
    done += EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) > 0;
    show(name, out, (size_t)(size + rest));
    printf("%d\n", done);
    EVP_CIPHER_CTX_free(context), EVP_CIPHER_free(cipher);
}
static void digest(const char *name)
{
    unsigned char hash[64];
    size_t size = 0;
    if (EVP_Q_digest(NULL, name, NULL, text(SIZE), SIZE, hash, &size) == 1)
        show(name, hash, size);
}
static void sign(EVP_PKEY *key, const char *name)
{
    unsigned char signature[1024];
    size_t size = sizeof signature;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int done = EVP_DigestSignInit_ex(context, NULL, name, NULL, NULL, key, NULL);
    done += EVP_DigestSign(context, signature, &size, text(1000), 1000);
    EVP_MD_CTX *check = EVP_MD_CTX_new();
    done += EVP_DigestVerifyInit_ex(check, NULL, name, NULL, NULL, key, NULL);
    done += EVP_DigestVerify(check, signature, size, text(1000), 1000);
    signature[9] ^= 1;
    printf("signed by %s: %d, forged: %d\n", EVP_PKEY_get0_type_name(key), done,
           EVP_DigestVerify(check, signature, size, text(1000), 1000));
    EVP_MD_CTX_free(context), EVP_MD_CTX_free(check), EVP_PKEY_free(key);
}
int main(void)
{
    const char *digests[] = {"MD5", "SHA1", "SHA256", "SHA512", "SHA3-256", "BLAKE2B512", "SM3"};
    for (size_t i = 0; i < sizeof digests / sizeof *digests; i++)
        digest(digests[i]);
    const char *ciphers[] = {"AES-256-GCM", "AES-128-CBC", "AES-192-CTR", "ChaCha20-Poly1305", "CAMELLIA-256-CBC"};
    for (size_t i = 0; i < sizeof ciphers / sizeof *ciphers; i++)
        encrypt(ciphers[i]);
    sign(EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024), "SHA256");
    sign(EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256"), "SHA384");
    sign(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), NULL);
    BIGNUM *base = BN_bin2bn(text(256), 256, NULL), *modulus = BN_bin2bn(text(200) + 3, 190, NULL), *power = BN_new();
    BN_set_bit(modulus, 0);
    printf("%d ", BN_mod_exp(power, base, base, modulus, BN_CTX_new()));
    printf("%s\n", BN_bn2hex(power));
    BIO *broken = BIO_new_mem_buf("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", -1);
    EVP_PKEY *none = PEM_read_bio_PUBKEY(broken, NULL, NULL, NULL);
    printf("%d %s\n", none == NULL, ERR_reason_error_string(ERR_peek_last_error()));
    puts(OpenSSL_version(OPENSSL_VERSION));
    return 0;
}
#else
#include <zlib.h>
int main(void)
{
    for (int level = 0; level < 10; level++) {
        unsigned char *packed = malloc(SIZE * 2), *back = malloc(SIZE);
        unsigned long size = SIZE * 2, length = SIZE;
        int code = compress2(packed, &size, text(SIZE), SIZE, level);
        show("packed", packed, size);
        code |= uncompress(back, &length, packed, size);
        show("back", back, length);
        printf("%d %lx %lx\n", code, crc32(0, back, SIZE), adler32(1, back, SIZE));
    }
    gzFile file = gzopen("text.gz", "wb");
    int wrote = gzwrite(file, text(SIZE), SIZE);
    printf("%s: %d %d %s\n", zlibVersion(), wrote, gzclose(file), gzerror(NULL, NULL) ? "error" : "none");
    return 0;
}
#endif
