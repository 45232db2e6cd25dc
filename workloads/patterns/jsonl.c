/* jsonl.c: JSON lines parsed on workers, as log shippers and importers do it. A reader allocates each
 * line; a worker parses it into a tree of small blocks, writes the tree out again, and frees tree and
 * line. The text must come back byte for byte: that is the check of every block of the tree. */
#include <stdio.h>

#include "pattern.h"

#define BATCH_LINES 100
#define QUEUE_BATCHES 16
#define LINE_MAX_BYTES 2048
#define CORPUS_LINES 8192

enum kind { NOTHING, FALSE, TRUE, NUMBER, TEXT, LIST, OBJECT };

/* A value; the members of a list or object hang on `first` and are chained by `next`. */
struct value {
    enum kind kind;
    int64_t number;
    char *key;
    char *text;
    struct value *first, *next;
};

/* ---- the text, made once before the clock runs ---- */

struct writer {
    char *at, *end;
};

static void write_bytes(struct writer *writer, const char *bytes, size_t count) {
    if ((size_t)(writer->end - writer->at) < count) cannot("write a line: it is too long");
    memcpy(writer->at, bytes, count);
    writer->at += count;
}

static void write_word(struct writer *writer, const char *word) { write_bytes(writer, word, strlen(word)); }

static void write_number(struct writer *writer, int64_t number) {
    char digits[24];
    write_bytes(writer, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number));
}

static void write_text(struct writer *writer, const char *text) {
    write_word(writer, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') write_word(writer, "\\");
        write_bytes(writer, text, 1);
    }
    write_word(writer, "\"");
}

static void write_random_text(struct writer *writer, struct rng *rng, size_t length_max) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz     etaoin,.\"\\";
    char text[256];
    size_t length = rng_below(rng, length_max);
    for (size_t i = 0; i < length; i++) text[i] = letters[rng_below(rng, sizeof letters - 1)];
    text[length] = '\0';
    write_text(writer, text);
}

static void write_line(struct writer *writer, struct rng *rng, uint64_t id) {
    static const char *const levels[] = {"debug", "info", "warning", "error"};
    write_word(writer, "{\"id\":");
    write_number(writer, (int64_t)id);
    write_word(writer, ",\"level\":");
    write_text(writer, levels[rng_below(rng, 4)]);
    write_word(writer, ",\"message\":");
    write_random_text(writer, rng, 200);
    write_word(writer, ",\"user\":{\"name\":");
    write_random_text(writer, rng, 20);
    write_word(writer, ",\"admin\":");
    write_word(writer, rng_below(rng, 2) ? "true" : "false");
    write_word(writer, ",\"manager\":null},\"tags\":[");
    for (size_t i = rng_below(rng, 6); i > 0; i--) {
        write_random_text(writer, rng, 12);
        if (i > 1) write_word(writer, ",");
    }
    write_word(writer, "],\"latencies\":[");
    for (size_t i = rng_below(rng, 9); i > 0; i--) {
        write_number(writer, (int64_t)rng_below(rng, 2000000) - 1000000);
        if (i > 1) write_word(writer, ",");
    }
    write_word(writer, "]}");
}

/* ---- the tree ---- */

struct parser {
    const char *at;
    const char *line;
};

static _Noreturn void line_wrong(const struct parser *parser) {
    contents_wrong(parser->line, strlen(parser->line));
}

static void expect(struct parser *parser, const char *word) {
    size_t length = strlen(word);
    if (strncmp(parser->at, word, length) != 0) line_wrong(parser);
    parser->at += length;
}

static char *parse_text(struct parser *parser) {
    expect(parser, "\"");
    size_t length = 0;
    const char *end = parser->at;
    for (; *end != '"'; end++, length++) {
        if (*end == '\\') end++;
        if (*end == '\0') line_wrong(parser);
    }
    char *text = take(length + 1);
    for (size_t i = 0; i < length; i++) {
        if (*parser->at == '\\') parser->at++;
        text[i] = *parser->at++;
    }
    text[length] = '\0';
    parser->at = end + 1;
    return text;
}

static struct value *parse_value(struct parser *parser);

static void parse_members(struct parser *parser, struct value *parent) {
    char close = parent->kind == OBJECT ? '}' : ']';
    struct value **last = &parent->first;
    parser->at++;
    while (*parser->at != close) {
        char *key = NULL;
        if (parent->first) expect(parser, ",");
        if (parent->kind == OBJECT) {
            key = parse_text(parser);
            expect(parser, ":");
        }
        *last = parse_value(parser);
        (*last)->key = key;
        last = &(*last)->next;
    }
    parser->at++;
}

static struct value *parse_value(struct parser *parser) {
    struct value *value = take(sizeof *value);
    *value = (struct value){0};
    switch (*parser->at) {
    case '{': value->kind = OBJECT; parse_members(parser, value); break;
    case '[': value->kind = LIST; parse_members(parser, value); break;
    case '"': value->kind = TEXT; value->text = parse_text(parser); break;
    case 't': value->kind = TRUE; expect(parser, "true"); break;
    case 'f': value->kind = FALSE; expect(parser, "false"); break;
    case 'n': value->kind = NOTHING; expect(parser, "null"); break;
    default: {
        char *end;
        value->kind = NUMBER;
        value->number = strtoll(parser->at, &end, 10);
        if (end == parser->at) line_wrong(parser);
        parser->at = end;
    }
    }
    return value;
}

static void write_value(struct writer *writer, const struct value *value) {
    if (value->key) {
        write_text(writer, value->key);
        write_word(writer, ":");
    }
    switch (value->kind) {
    case NOTHING: write_word(writer, "null"); return;
    case FALSE: write_word(writer, "false"); return;
    case TRUE: write_word(writer, "true"); return;
    case NUMBER: write_number(writer, value->number); return;
    case TEXT: write_text(writer, value->text); return;
    case LIST:
    case OBJECT: break;
    }
    write_word(writer, value->kind == OBJECT ? "{" : "[");
    for (const struct value *member = value->first; member; member = member->next) {
        if (member != value->first) write_word(writer, ",");
        write_value(writer, member);
    }
    write_word(writer, value->kind == OBJECT ? "}" : "]");
}

static void value_free(struct value *value) {
    while (value->first) {
        struct value *member = value->first;
        value->first = member->next;
        value_free(member);
    }
    free(value->key);
    free(value->text);
    free(value);
}

/* ---- reader and workers ---- */

struct batch {
    size_t count;
    char *lines[BATCH_LINES];
};

/* A bounded queue; after `closed`, an empty one means the end. */
struct batches {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    struct batch *waiting[QUEUE_BATCHES];
    size_t first, count;
    int closed;
};

static void batches_put(struct batches *batches, struct batch *batch) {
    pthread_mutex_lock(&batches->lock);
    while (batches->count == QUEUE_BATCHES) pthread_cond_wait(&batches->not_full, &batches->lock);
    batches->waiting[(batches->first + batches->count++) % QUEUE_BATCHES] = batch;
    pthread_cond_signal(&batches->not_empty);
    pthread_mutex_unlock(&batches->lock);
}

static void batches_close(struct batches *batches) {
    pthread_mutex_lock(&batches->lock);
    batches->closed = 1;
    pthread_cond_broadcast(&batches->not_empty);
    pthread_mutex_unlock(&batches->lock);
}

static struct batch *batches_get(struct batches *batches) {
    struct batch *batch = NULL;
    pthread_mutex_lock(&batches->lock);
    while (batches->count == 0 && !batches->closed) pthread_cond_wait(&batches->not_empty, &batches->lock);
    if (batches->count > 0) {
        batch = batches->waiting[batches->first];
        batches->first = (batches->first + 1) % QUEUE_BATCHES;
        batches->count--;
        pthread_cond_signal(&batches->not_full);
    }
    pthread_mutex_unlock(&batches->lock);
    return batch;
}

static uint64_t work_line(char *line) {
    char text[LINE_MAX_BYTES];
    struct writer writer = {text, text + sizeof text};
    struct parser parser = {line, line};
    struct value *tree = parse_value(&parser);
    write_value(&writer, tree);
    value_free(tree);
    size_t length = (size_t)(writer.at - text);
    if (strlen(line) != length || memcmp(line, text, length) != 0) line_wrong(&parser);
    uint64_t sum = length;
    for (size_t i = 0; i + 8 <= length; i += 8) sum = sum * 31 + word_at(text, i);
    free(line);
    return sum;
}

struct workshop {
    struct batches batches;
    uint64_t sums[THREADS_MAX]; /* by worker */
};

struct worker {
    struct workshop *workshop;
    uint64_t *sum;
    pthread_t thread;
};

static void *work(void *argument) {
    struct worker *worker = argument;
    struct batch *batch;
    while ((batch = batches_get(&worker->workshop->batches))) {
        for (size_t i = 0; i < batch->count; i++) *worker->sum += work_line(batch->lines[i]);
        free(batch);
    }
    return NULL;
}

static void read_lines(struct batches *batches, const char *corpus, uint64_t ops) {
    const char *from = corpus;
    for (uint64_t i = 0; i < ops;) {
        struct batch *batch = take(sizeof *batch);
        for (batch->count = 0; batch->count < BATCH_LINES && i < ops; i++) {
            size_t length = strlen(from);
            char *line = take(length + 1);
            memcpy(line, from, length + 1);
            batch->lines[batch->count++] = line;
            from = i % CORPUS_LINES == CORPUS_LINES - 1 ? corpus : from + length + 1;
        }
        batches_put(batches, batch);
    }
    batches_close(batches);
}

uint64_t jsonl(const struct plan *plan) {
    clock_pauses();
    char *corpus = table_new(CORPUS_LINES, LINE_MAX_BYTES);
    struct writer writer = {corpus, corpus + (size_t)CORPUS_LINES * LINE_MAX_BYTES};
    struct rng rng = rng_new(plan->seed);
    for (uint64_t i = 0; i < CORPUS_LINES; i++) {
        write_line(&writer, &rng, i);
        write_bytes(&writer, "", 1);
    }
    clock_resumes();
    struct workshop *workshop = table_new(1, sizeof *workshop);
    struct worker *workers = table_new(plan->threads, sizeof *workers);
    pthread_mutex_init(&workshop->batches.lock, NULL);
    pthread_cond_init(&workshop->batches.not_empty, NULL);
    pthread_cond_init(&workshop->batches.not_full, NULL);
    for (unsigned i = 0; i < plan->threads; i++) {
        workers[i] = (struct worker){workshop, &workshop->sums[i], 0};
        workers[i].thread = start_thread(work, &workers[i]);
    }
    read_lines(&workshop->batches, corpus, plan->ops);
    uint64_t sum = 0;
    for (unsigned i = 0; i < plan->threads; i++) {
        join_thread(workers[i].thread);
        sum += *workers[i].sum;
    }
    table_drop(workers, plan->threads, sizeof *workers);
    table_drop(workshop, 1, sizeof *workshop);
    table_drop(corpus, CORPUS_LINES, LINE_MAX_BYTES);
    return sum;
}
