/** A CryptoKey. */
export interface KeyLike {
    readonly algorithm: object;
    readonly extractable: boolean;
}
export interface SignerOptions {
    /** The key's name in the hub's configuration. */
    keyId: string;
    secret: string | ArrayBuffer | ArrayBufferView | KeyLike;
    /** Milliseconds since 1970. */
    now?: () => number;
    /** Where there is no global one (Node 18). */
    crypto?: { readonly subtle: any; randomUUID(): string };
}
export declare function signer(options: SignerOptions): (message: any) => Promise<string>;
