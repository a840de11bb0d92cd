export interface SignerOptions {
    /** The key's name in the hub's configuration. */
    keyId: string;
    secret: string | BufferSource | CryptoKey;
    /** Milliseconds since 1970. */
    now?: () => number;
    /** Where there is no global one (Node 18). */
    crypto?: Crypto;
}
export declare function signer(options: SignerOptions): (message: any) => Promise<string>;
